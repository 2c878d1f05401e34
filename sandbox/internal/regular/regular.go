// Package regular opens and replaces regular files by their canonical paths, with
// no symbolic link followed anywhere on the way.
//
// It does so in the calling process, or in another one that is asked over a socket
// and answers with open descriptors: a worker, which is this very binary executed
// inside a sandbox. It judges nothing: what the process may reach decides. Like
// package helper, which calls Serve, it is a leaf and imports only packages near
// the kernel.
package regular

// Marker is the first argument by which a re-executed binary knows that it is a
// worker. The argument alone does nothing: without a socket on descriptor Door the
// process refuses.
const Marker = "toold-file-worker"

// Door is the worker's descriptor of the socket on which it is given connections.
const Door = 3
