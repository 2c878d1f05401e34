// Package suite has what plays the published cases against whatever runs commands for
// an agent: the readers of the case files, the worlds and files in which cases are
// played, the players and the checks.
//
// An implementation is played through a Target, which an adapter of few lines makes
// of it. What an implementation cannot do is no failure: its cases are not
// applicable, each with the reason.
package suite
