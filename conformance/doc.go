// Package conformance holds the published suites of wire and policy cases. Its
// tests start the real daemon, play testdata/wire.jsonl against it and check what
// a client would see, what is on disk and what ran; and ask it how it would decide
// the calls of testdata/policy.jsonl.
//
// It contains no code but tests. The format of a wire case:
//
//   - id, dialect, why: what it is about. Dialects that this version does not
//     speak are listed in notApplicable.
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
// Run it with -v: go test hides the output of a package that passes. The last
// lines are "wire: N passed, M failed, K not applicable" and "policy: N passed, M
// failed", whichever ran. TOOLD_CASES_WIRE and TOOLD_CASES_POLICY name other case
// files (separated by commas or colons) to play instead, TOOLD_CASES_POLICIES
// another folder of policies; TOOLD_BIN names a daemon to test instead of a fresh
// build.
package conformance
