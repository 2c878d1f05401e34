//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/toold/toold/conformance/suite"
)

// ssh runs bash over OpenSSH, by an sshd of its own on loopback. It confines nothing.
type ssh struct{}

func (ssh) Version(ctx context.Context) (string, error) {
	if _, err := exec.LookPath(sshd); err != nil {
		return "", err
	}
	line, err := version(ctx, "ssh", "-V")
	line, _, _ = strings.Cut(line, ",")
	return line, err
}

const sshd = "/usr/sbin/sshd"

func (ssh) Files() []string { return nil }

// sshSession is an sshd, and how a client connects to it.
type sshSession struct {
	at     suite.Workspace
	server *exec.Cmd
	client []string
}

func (ssh) Open(ctx context.Context, at suite.Workspace) (suite.Session, error) {
	key := filepath.Join(at.Scratch, "key")
	if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("ssh-keygen: %w: %s", err, out)
	}
	if os.Getuid() == 0 { // where sshd gives up its rights
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return nil, err
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &sshSession{at: at}
	s.server = exec.Command(sshd, "-D", "-f", "/dev/null", "-p", port, "-h", key, "-o", "ListenAddress=127.0.0.1", "-o", "PidFile=none",
		"-o", "StrictModes=no", "-o", "UsePAM=no", "-o", "MaxStartups=200", "-o", "MaxSessions=200", "-o", "AuthorizedKeysFile="+key+".pub", "-o", "SetEnv=HOME="+at.Home)
	s.server.Env = append(os.Environ(), at.Env...)
	s.client = []string{
		"ssh", "-F", "none", "-p", port, "-i", key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "-S", filepath.Join(at.Scratch, "s"),
	}
	return s, startServer(ctx, s.server, func() error { return s.ssh("-fNM", "127.0.0.1").Run() }) // one connection for all commands
}

func (s *sshSession) ssh(args ...string) *exec.Cmd {
	return exec.Command(s.client[0], append(s.client[1:len(s.client):len(s.client)], args...)...)
}

func (s *sshSession) Run(ctx context.Context, c suite.Command) (suite.Result, error) {
	terminal := "-T"
	switch c.Terminal {
	case "split":
		return suite.Result{}, suite.NotApplicable("ssh has one terminal for all streams")
	case "single":
		terminal = "-tt"
	}
	line := "cd " + suite.Quote(c.Dir) + " && exec env"
	for _, v := range c.Env {
		line += " " + suite.Quote(v)
	}
	c.Dir, c.Env = s.at.Scratch, nil // of the client
	return runProgram(ctx, c, os.Environ(), s.ssh(terminal, "127.0.0.1", line+" bash -c "+suite.Quote(c.Script)).Args...)
}

func (s *sshSession) Close() error {
	s.ssh("-O", "exit", "127.0.0.1").Run()
	return killGroup(s.server)
}
