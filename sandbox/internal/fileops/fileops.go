// Package fileops opens and replaces regular files by their canonical paths, following no
// symbolic link.
//
// It does so in this process, or in a worker: this binary inside a sandbox, which answers with
// descriptors. It checks no permissions: what its process can reach decides. Like package
// helper, which calls Serve, it imports only packages near the kernel.
package fileops

import "errors"

// Marker is the first argument of a worker. Package helper refuses it without a socket on descriptor
// ListenerFD.
const Marker = "toold-file-worker"

// ErrChanged is returned if the file is not the one that was opened, or has changed since.
var ErrChanged = errors.New("the file was changed or replaced meanwhile by somebody else; read it again")

// ListenerFD is the worker's descriptor of the socket on which it receives connections.
const ListenerFD = 3
