// Package conformance holds the published suite of wire cases. Its tests start
// the real daemon, play testdata/wire.jsonl against it and check what a client
// would see, what is on disk and what ran.
//
// It contains no code but tests. The format of a case:
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
// Run it with -v: go test hides the output of a package that passes. The last
// line is "wire: N passed, M failed, K not applicable". TOOLD_CASES_WIRE names
// other case files (separated by commas or colons) to play instead; TOOLD_BIN
// names a daemon to test instead of a fresh build.
package conformance
