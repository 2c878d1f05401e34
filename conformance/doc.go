// Package conformance has the published suites of wire, policy, exec and escape cases. Its tests start the real daemon,
// play testdata/wire.jsonl against it and check what a client sees, what is on disk and what ran; ask it how it would
// decide the calls of testdata/policy.jsonl; run the commands of testdata/exec.jsonl; and try to leave the sandbox with
// those of testdata/escape.jsonl. Files that end in -own have further cases of these kinds.
//
// Package suite and its subpackages play exec and escape cases on any implementation, this package plays wire and policy
// cases on toold. The command toold-conformance plays all of them; on other implementations without those with the field
// own, which says what convention of toold a case is about.
//
// A wire case has the fields:
//
//   - id, dialect, why: what it is about. In the dialects of isPeer toold connects to a scripted server of Letta, see
//     peer.
//   - setup: policy (allow_all, deny_all, ask_all, or rules such as {"deny":"bash rm"}, with default for the rest),
//     files, roles of each connection, limits, ask_timeout_ms, profile (pty or pipe), redact, auth, fixture.
//   - send: the steps, in order; see the type step.
//   - expect: what is checked afterwards; see the type expectation and, for matchers, matcher.
//
// A policy case names a policy (testdata/policies), a tool, its arguments and a directory; @WS@, @HOME@ and @OUT@ are
// directories of a tree made from testdata/policy-fixture.json. Each policy has a daemon of its own, asked with
// explain_policy. By kind, a case passes: an attack when the decision is not in must_not, a benign call when it is
// allowed, a call to be asked when it is asked. Arguments that toold refuses count as deny.
//
// An exec case is one call with options (see execution.Options) and expectations (see execChecks; stdout_, stderr_,
// combined_ and result_ with the endings of execution.StreamCheck). Unknown ones fail the case. In addition, the
// recorded output must have the size that the return names, live output must be a part of it, and no call may get two
// different returns. Some options have another form in toold: split_pipe is the terminal split; leftover: keep is a call
// in the background; a call that a signal of the client ended counts as cancelled; stdin is followed by its end.
//
// An escape case is a script that tries to leave the sandbox (see escape.Case), played by a real call to a daemon of its
// own in a world of its own: namespaces with a home full of secrets, other processes, servers, sockets and an internet
// that log connections. Another call may run in the background. Its checks are scripts that run outside afterwards. A
// case is escaped, broken (something that must work does not), blocked or usable. Known holes are listed with a reason
// in testdata/escape-open.json, and for other tiers in files such as testdata/escape-open-tier-b.json; the tests fail
// when anything else is open, and when a listed hole is not. What a policy refuses to run as written runs once more as a
// program that hides it from the policy.
//
// Cases that load the machine or measure time are played first, one after the other (TestExecCasesThatLoad,
// TestEscapeCasesThatLoad, TestWireCasesThatMeasure); all others side by side, three for each processor unless -parallel
// says otherwise. A failure shows the end of the daemon's log, its processes and the load of the machine.
//
// The limits of time in cases are those of an idle machine. A missed limit is raised by the load that suite.Lateness
// measures, and a case that was only late is played again, alone, up to three times in all; with -v the output says so.
// A case that failed otherwise is not repeated. A signal waits for suite.Announcement.
//
// TestStress… put a daemon under load: little every day, much with make stress.
//
// The tests print one line for each suite, "wire: N passed, M failed, K not applicable", "policy: N passed, M failed",
// "exec: N passed, M failed, K not applicable" and "escape: N blocked, M escaped, U usable, B broken, K not applicable",
// and name what failed; with -v also what was not played and the known holes. TOOLD_CASES_WIRE, TOOLD_CASES_POLICY,
// TOOLD_CASES_EXEC and TOOLD_CASES_ESCAPE name other case files (separated by commas or colons) to play instead,
// TOOLD_CASES_POLICIES another directory of policies; TOOLD_BIN names a daemon to test instead of a fresh build.
// TOOLD_STEP_CLOCK=1 allows one exec case to set the clock of the machine forward for half a second, which needs root
// and a machine that nothing else uses. With -short the cases that take minutes are left out.
package conformance
