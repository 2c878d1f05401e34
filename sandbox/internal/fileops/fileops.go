// Package fileops opens and replaces regular files by their canonical paths, following no
// symbolic link.
//
// It does so in this process, or in a worker: this binary inside a sandbox, which answers with
// descriptors. It checks no permissions: what its process can reach decides. Like package
// helper, which calls Serve, it imports only packages near the kernel.
package fileops

// Marker is the first argument of a worker. Without a socket on descriptor ListenerFD the
// process refuses it.
const Marker = "toold-file-worker"

// ListenerFD is the worker's descriptor of the socket on which it receives connections.
const ListenerFD = 3
