// Package fileworker opens and replaces regular files by their canonical paths, without following
// any symbolic link.
//
// It does so in the calling process, or in a worker that receives requests over a socket and
// answers with open descriptors. The worker is this binary, executed inside a sandbox. It checks no
// permissions: what its process can reach decides. Like package helper, which calls Serve, it
// imports only packages near the kernel.
package fileworker

// Marker is the first argument of a worker. The argument alone does nothing: without a socket on
// descriptor ListenerFD the process refuses.
const Marker = "toold-file-worker"

// ListenerFD is the worker's descriptor of the socket on which it receives connections.
const ListenerFD = 3
