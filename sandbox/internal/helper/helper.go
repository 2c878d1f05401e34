// Package helper is the inside of the process that holds one call: it confines
// itself, starts the shell, stays as its parent until nothing is left of the
// call, and reports to the daemon that started it.
//
// It is a leaf: it imports nothing of toold but package regular, another leaf, and
// only packages near the kernel, so that a re-executed binary enters it before the
// heavy packages of the daemon are initialised (the Go linker initialises ready
// packages in the order of their paths). Its init function is therefore the one
// exception to the rule that no package of toold has any.
package helper

// Marker is the first argument by which a re-executed binary knows that it is a
// helper. The argument alone does nothing: without the control socket of a
// daemon on descriptor 3 the process refuses and ends with status 125.
const Marker = "toold-sandbox-helper"

// ControlFD is the helper's descriptor of the control socket.
const ControlFD = 3
