package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// typed runs a program at a terminal, where each line of a file is typed when the program has asked for it: typed FILE
// PROGRAM ARG... A line that begins with < is typed beforehand. The script's stdout is the terminal's.
func typed(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.SplitAfter(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	terminal, tty, err := pty.Open()
	ts.Check(err)
	defer terminal.Close()
	for ; len(lines) > 0 && strings.HasPrefix(lines[0], "<"); lines = lines[1:] {
		_, err = terminal.WriteString(lines[0][1:])
		ts.Check(err)
	}
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "TOOLD_LISTEN", "TOOLD_POLICY", "TOOLD_CONFIG", "GORACE", "MARK"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	tty.Close()
	var seen, since bytes.Buffer
	for piece := make([]byte, 1024); err == nil; { // EIO: the program has ended
		var n int
		n, err = terminal.Read(piece)
		seen.Write(piece[:n])
		since.Write(piece[:n])
		text := since.String()
		asks := func(prompt string) bool { return strings.Contains(text, prompt) } // toold may print more behind it
		if !slices.ContainsFunc([]string{"no: WHY: ", "(nothing goes back): ", "[n]o: ", "[y/N] "}, asks) {
			continue
		}
		since.Reset()
		line := "\x04" // end of input
		if len(lines) > 0 {
			line, lines = strings.TrimSuffix(lines[0], "\n")+"\n", lines[1:]
		}
		_, _ = terminal.WriteString(line)
	}
	err = cmd.Wait()
	fmt.Fprint(ts.Stdout(), seen.String())
	if (err != nil) != neg {
		ts.Fatalf("%v: %v\n%s", args, err, seen.String())
	}
}
