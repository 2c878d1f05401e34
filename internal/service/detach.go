package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// detach starts the daemon as a process of its own session.
func (o Options) detach(_ context.Context, log string) (process, error) {
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return process{}, fmt.Errorf("cannot make the daemon's log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(o.Command[0], o.Command[1:]...) // not CommandContext: it outlives this program
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.Dir, out, out
	cmd.SysProcAttr = ownSession()
	keepOpenFiles()
	if err := cmd.Start(); err != nil {
		return process{}, fmt.Errorf("cannot start the daemon: %w", err)
	}
	over := make(chan struct{})
	// Ends when the daemon does, or with this program.
	go func() {
		defer close(over)
		_ = cmd.Wait() // ProcessState says how it ended
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
