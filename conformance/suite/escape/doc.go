// Package escape has the cases in which a command tries to leave its sandbox, the worlds
// (namespaces with a machine's files, network and users) in which they are played, and the checks
// outside of the sandbox that decide whether it escaped.
package escape
