// Package conformance holds the published suites of wire, policy, exec and escape cases.
// Its tests start the real daemon, play testdata/wire.jsonl against it and check
// what a client would see, what is on disk and what ran; ask it how it would decide
// the calls of testdata/policy.jsonl; run the commands of testdata/exec.jsonl; and try
// to get out of the sandbox by those of testdata/escape.jsonl. Files that end in -own
// hold further cases of these kinds.
//
// Package suite reads and plays exec and escape cases on any implementation, and this one
// wire and policy cases on toold; the command toold-conformance plays all of them, on others
// without those with own, which says what convention of toold a case is about. The format of
// a wire case:
//
//   - id, dialect, why: what it is about. Dialects that this version does not
//     speak are listed in notApplicable. In those of isPeer toold connects to a
//     scripted server of Letta, see peer.
//   - setup: policy (allow_all, deny_all, ask_all, or rules such as
//     {"deny":"bash rm"}, with default for the rest), files, roles of each
//     connection, limits, ask_timeout_ms, profile (pty or pipe), redact, auth,
//     fixture.
//   - send: the steps, in order; see the type step.
//   - expect: what must hold afterwards; see the type expectation and, for
//     matchers, matcher.
//
// A policy case names a policy (testdata/policies), a tool, its arguments and a
// folder; @WS@, @HOME@ and @OUT@ stand for folders of a tree made as
// testdata/policy-fixture.json says. Each policy has a daemon of its own, asked
// with explain_policy. By kind, a case passes: an attack when the decision is none
// of must_not, a benign call when it is allowed, a call to be asked when it is
// asked. Arguments that toold refuses count as deny.
//
// An exec case is one call, its options (see execution.Options) and what is expected of it
// (see execChecks; stdout_, stderr_, combined_ and result_ with the endings of
// execution.StreamCheck). What the runner does not know fails the case. Beside what a case
// expects, the recorded output has the size that the return names, live output is
// part of it, and no call gets two different returns. Where toold has another form
// for what a case wishes, the runner uses that: split_pipe is the terminal split;
// leftover: keep is a call in the background; a call that a signal of the client
// ended counts as cancelled, although toold reports how the command ended; stdin is
// followed by its end.
//
// An escape case is a script that tries to get out (see escape.Case), played by a
// real call to a daemon of its own in a world of its own: namespaces with a home full
// of secrets, other processes, servers, sockets and an internet that log whatever
// reaches them. A call may run beside it, in the background. Its checks are scripts that run outside afterwards. Each case is
// escaped, broken (something that must work does not), blocked or usable. What is
// known to be open stands in testdata/escape-open.json with the reason, and in
// testdata/escape-open-tier-b.json for worlds that refuse calls a /proc, and its like
// for the other tiers; the tests fail
// when anything else is, and when something on that list is not any more. What a policy
// refuses to run as written runs once more as a program into which no policy sees.
//
// Cases that load the machine or measure time are played first, one after the other
// (TestExecCasesThatLoad, TestEscapeCasesThatLoad, TestWireCasesThatMeasure); all
// others side by side, three for each processor unless -parallel says otherwise. What
// fails tells the end of the daemon's log, its processes and the load of the machine.
//
// Limits of time in the cases are those of a machine that has nothing else to do.
// Here they are as many times longer as a loop of bash takes longer when a limit was
// missed, and a case of which only the time was wrong is played again, alone, up to
// three times in all; with -v the output says so. What is wrong is never tried twice. A
// signal waits for what the script prints before it waits.
//
// TestStress… put a daemon under load: little every day, much with make stress.
//
// Run it with -v: go test hides the output of a package that passes. Without -v it
// prints one line for each suite and names what failed; with -v also what was not
// played and what is known to be open. The lines are "wire: N passed, M failed, K not applicable", "policy: N passed, M
// failed", "exec: N passed, M failed, K not applicable" and "escape: N blocked, M
// escaped, U usable, B broken, K not applicable", whichever ran. TOOLD_CASES_WIRE,
// TOOLD_CASES_POLICY, TOOLD_CASES_EXEC and TOOLD_CASES_ESCAPE name other case files
// (separated by commas or colons) to play instead, TOOLD_CASES_POLICIES another
// folder of policies; TOOLD_BIN names a daemon to test instead of a fresh build.
// TOOLD_STEP_CLOCK=1 allows one exec case to set the clock of the machine forward
// for half a second, which needs root and a machine that nothing else uses. With
// -short the cases that take minutes are left out.
package conformance
