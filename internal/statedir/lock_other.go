//go:build !linux

package statedir

import (
	"fmt"
	"os"
	"syscall"
)

// Other systems lack open file description locks. A second daemon fails to listen, and a process counts as alive
// while a process with its pid, with which its name begins, exists.

func lockByte(*os.File, int64, bool) (bool, error) { return true, nil }

// Served reports whether a process serves dir.
func Served(dir string) (bool, error) {
	d, err := read(dir)
	return err == nil && alive(d.PID), nil
}

// Held reports whether a process holds a name; see Hold.
func Held(_, name string) (bool, error) {
	var pid int
	_, err := fmt.Sscan(name, &pid)
	return err == nil && alive(pid), nil
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
