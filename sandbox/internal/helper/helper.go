// Package helper runs in the first process of a call: it confines itself, starts the shell, remains its parent until
// the call has no other processes, and reports to the daemon.
//
// Of toold, it imports only fileops and paths, and otherwise only packages near the kernel, so that a re-executed
// binary enters it before the daemon's large packages are initialised: the Go linker always takes the package with the
// least path of those whose imports are initialised, so that golang.org/x/sys/unix must be the last of its imports. For
// this it has toold's only init function.
package helper

// Marker is the first argument of a helper. It has no effect on its own: unless descriptor 3 is the control socket of
// a daemon, the process exits with status 125.
const Marker = "toold-sandbox-helper"

// ControlFD is the descriptor of the control socket in the helper.
const ControlFD = 3
