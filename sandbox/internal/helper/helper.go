// Package helper runs inside the process of one call: it confines itself, starts the shell, stays
// its parent until none of the call's processes is left, and reports to the daemon.
//
// It imports nothing of toold but package fileops and paths, and only packages near the kernel,
// so that a re-executed binary enters it before the large packages of the daemon are initialised
// (the Go linker initialises ready packages in the order of their paths). Therefore it has the only
// init function of toold.
package helper

// Marker is the first argument of a helper. The argument alone does nothing: without a daemon's
// control socket on descriptor 3 the process exits with status 125.
const Marker = "toold-sandbox-helper"

// ControlFD is the helper's descriptor of the control socket.
const ControlFD = 3
