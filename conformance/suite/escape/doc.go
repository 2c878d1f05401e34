// Package escape plays cases in which a command tries to leave its sandbox. Each has a World of its own, namespaces with
// files, a network and users. Checks outside the sandbox decide whether it escaped.
package escape
