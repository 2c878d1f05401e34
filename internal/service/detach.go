package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func (o Options) detach(_ context.Context, log string) (process, error) {
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return process{}, fmt.Errorf("cannot make the daemon's log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(o.Command[0], o.Command[1:]...) // it outlives ctx
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.Dir, append(os.Environ(), Background+"=1"), out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	keepOpenFiles()
	if err := cmd.Start(); err != nil {
		return process{}, fmt.Errorf("cannot start the daemon: %w", err)
	}
	over := make(chan struct{})
	// Ends when the daemon does, or with this program.
	go func() {
		defer close(over)
		_ = cmd.Wait()
	}()
	return process{ended: func() (string, bool) {
		select {
		case <-over:
			return cmd.ProcessState.String(), true
		default:
			return "", false
		}
	}}, nil
}

// keepOpenFiles keeps the daemon from inheriting descriptors, whose locks it would otherwise hold as long as it runs.
func keepOpenFiles() {
	open, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// serves reports whether a process has the lock of a state directory open. If that is unknown, it compares the names
// of programs.
func serves(pid int, stateDir string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return true // there is no /proc
	}
	lock, err := os.Stat(filepath.Join(stateDir, "lock"))
	if err != nil {
		return false
	}
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		name, _ := os.ReadFile(filepath.Join(proc, "comm"))
		return strings.HasPrefix(string(name), "toold")
	}
	for _, fd := range open {
		if file, err := os.Stat(filepath.Join(proc, "fd", fd.Name())); err == nil && os.SameFile(file, lock) {
			return true
		}
	}
	return false
}
