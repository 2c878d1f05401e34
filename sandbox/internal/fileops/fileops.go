// Package fileops opens and replaces regular files by their canonical paths without following symbolic links.
//
// It does so in this process, or in a worker: this binary inside of a sandbox, which returns descriptors. It checks
// no permissions; the rights of its process decide. Like package helper, which calls Serve, it imports only packages
// near the kernel.
package fileops

import "errors"

// Marker is the first argument of a worker. Package helper rejects it unless descriptor ListenerFD is a socket.
const Marker = "toold-file-worker"

// ErrChanged is returned if the file is not the one that was opened, or has changed since.
var ErrChanged = errors.New("the file was changed or replaced meanwhile by somebody else; read it again")

// ListenerFD is the descriptor of the socket on which the worker accepts connections.
const ListenerFD = 3
