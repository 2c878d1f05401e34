// Package suite is the base of the published cases about running commands for an agent: the Target under test, the
// reader of case files, and limits of time.
//
// A small adapter makes a Target of an implementation. Cases about what an implementation lacks do not fail: they are
// not applicable, each with the reason.
package suite
