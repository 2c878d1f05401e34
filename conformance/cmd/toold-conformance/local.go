//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toold/toold/conformance/suite"
)

// runProgram runs a program to its end. Its timeout and the end of ctx kill its process group.
func runProgram(ctx context.Context, c suite.Command, env []string, args ...string) (suite.Result, error) {
	limit, cancel := within(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limit, args[0], args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, append(env, c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for what holds the pipes open
	var mu sync.Mutex
	out, errs := &outputBuffer{mu: &mu, live: c.Live}, &outputBuffer{mu: &mu, live: c.Live}
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		return suite.Result{Exit: -1}, err
	}
	err := cmd.Wait()
	_, exited := errors.AsType[*exec.ExitError](err)
	ended := exited || errors.Is(err, exec.ErrWaitDelay)
	if err != nil && !ended && limit.Err() == nil {
		return suite.Result{Exit: -1}, err
	}
	r := suite.Result{Stdout: out.kept.String(), Stderr: errs.kept.String(), Exit: cmd.ProcessState.ExitCode()}
	r.TimedOut = ctx.Err() == nil && limit.Err() != nil
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		r.Exit, r.Signal = 128+int(status.Signal()), signalName(status.Signal())
	}
	return r, nil
}

// within returns a context that ends after d, or with ctx if d is 0.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// startServer starts a server in a process group of its own and waits until it answers.
func startServer(ctx context.Context, server *exec.Cmd, answers func() error) error {
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		return err
	}
	for {
		err := answers()
		if err == nil {
			return nil
		}
		if suite.Sleep(ctx, 20*time.Millisecond) != nil {
			return errors.Join(err, killGroup(server))
		}
	}
}

// killGroup kills a server with all that it has started.
func killGroup(server *exec.Cmd) error {
	err := syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
	server.Wait()
	return err
}

// freePort is a port on which nothing listens.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), l.Close()
}

// hiddenDirs returns the directories of programs that a world would hide, with the node modules beside them.
func hiddenDirs(programs ...string) (list []string) {
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		dir := filepath.Dir(path)
		if before, _, ok := strings.Cut(dir, "/node_modules"); ok {
			dir = before + "/node_modules"
		}
		hidden := func(at string) bool { return strings.HasPrefix(dir, at) }
		if slices.ContainsFunc([]string{"/tmp/", "/run/", "/mnt/", "/srv/"}, hidden) && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// signalName is how a signal is called.
func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGABRT: "SIGABRT",
		syscall.SIGKILL: "SIGKILL", syscall.SIGSEGV: "SIGSEGV", syscall.SIGTERM: "SIGTERM",
	}
	if name, ok := names[s]; ok {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}

// outputBuffer keeps the output of a command and passes it on.
type outputBuffer struct {
	mu   *sync.Mutex // of both streams
	live func([]byte)
	kept bytes.Buffer
}

func (p *outputBuffer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != nil {
		p.live(b)
	}
	return p.kept.Write(b)
}

// version is the first line that a program prints.
func version(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, err
}
