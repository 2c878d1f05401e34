//go:build linux

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/toold/toold/conformance/suite"
)

// launcher starts a daemon as a shell or a service manager would: by a command that runs the program toold, such as
// "nohup toold".
type launcher struct {
	dir     string // for the script toold and its process id
	how     string // the command
	openMax int    // soft limit of open files, 0 = as it is
}

// command makes the script toold and returns the command that runs it.
func (l *launcher) command(args []string) (*exec.Cmd, error) {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return nil, err
	}
	lines := []string{"#!/bin/sh", "echo $$ >" + suite.Quote(l.pidFile()), "PATH=" + suite.Quote(os.Getenv("PATH"))}
	if l.openMax > 0 {
		lines = append(lines, fmt.Sprintf("ulimit -Sn %d || exit 1", l.openMax))
	}
	words := []string{"exec"}
	for _, arg := range args {
		words = append(words, suite.Quote(arg))
	}
	program := strings.Join(append(lines, strings.Join(words, " ")), "\n") + "\n"
	syscall.ForkLock.RLock() // a process that inherited the open file would make starting it fail (ETXTBSY)
	err := os.WriteFile(filepath.Join(l.dir, "toold"), []byte(program), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	return exec.Command("/bin/sh", "-c", "PATH="+suite.Quote(l.dir)+":$PATH; "+l.how), nil
}

func (l *launcher) pidFile() string { return filepath.Join(l.dir, "pid") }

// daemonPID is the process id of the daemon, once it is ready.
func (l *launcher) daemonPID() (int, error) {
	text, err := os.ReadFile(l.pidFile())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// attachTerminal makes the command start in a terminal of the user, unless it is nil.
func attachTerminal(cmd *exec.Cmd, window *os.File) {
	if window == nil {
		return
	}
	cmd.Stdin = window
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}
