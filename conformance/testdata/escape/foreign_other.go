//go:build linux && !amd64

package main

import "golang.org/x/sys/unix"

// foreign are the attempts that only amd64 knows.
func foreign() map[string]attempt {
	none := func(args) (string, int, error) { return "int80", -1, unix.ENOSYS }
	return map[string]attempt{"int80-tcp": none, "int80-unix": none, "int80-ptrace": none}
}
