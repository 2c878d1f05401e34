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
)

// launcher starts a daemon as a shell or a service manager would: a command in
// which the word toold stands for the daemon, such as "nohup toold".
type launcher struct {
	dir     string // for a program named toold and its process id; on no other path
	how     string // the command
	openMax int    // soft limit of open files, 0 = as it is
}

// command makes the program named toold and the command that runs it.
func (l *launcher) command(args []string) (*exec.Cmd, error) {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return nil, err
	}
	lines := []string{"#!/bin/sh", "echo $$ >" + quoted(l.pidFile()), "PATH=" + quoted(os.Getenv("PATH"))}
	if l.openMax > 0 {
		lines = append(lines, fmt.Sprintf("ulimit -Sn %d || exit 1", l.openMax))
	}
	words := []string{"exec"}
	for _, arg := range args {
		words = append(words, quoted(arg))
	}
	program := strings.Join(append(lines, strings.Join(words, " ")), "\n") + "\n"
	syscall.ForkLock.RLock() // a process that inherits the open file would keep it from being run
	err := os.WriteFile(filepath.Join(l.dir, "toold"), []byte(program), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	return exec.Command("/bin/sh", "-c", "PATH="+quoted(l.dir)+":$PATH; "+l.how), nil
}

func (l *launcher) pidFile() string { return filepath.Join(l.dir, "pid") }

// daemonPID is the process id of the daemon, once it has told that it is ready.
func (l *launcher) daemonPID() (int, error) {
	text, err := os.ReadFile(l.pidFile())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// quoted makes one word of a shell's language.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// inWindow makes a command that starts in a terminal window of the user.
func inWindow(cmd *exec.Cmd, window *os.File) {
	if window == nil {
		return
	}
	cmd.Stdin = window
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}
