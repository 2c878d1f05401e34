package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/must"
)

var (
	update      = flag.Bool("update", false, "write the golden files anew")
	testdata, _ = filepath.Abs("testdata") // tests change the directory
)

// golden compares a text with a file of testdata. With -update it writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join(testdata, name)
	if *update {
		must.Do(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test ./cmd/toold -run Golden -update writes it):\n%s", file, diff)
	}
}

func TestGoldenHelp(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		fmt.Fprintf(&all, "-- %s --\n", cmd.CommandPath())
		cmd.SetOut(&all)
		if err := cmd.Help(); err != nil {
			t.Error(err)
		}
		for _, below := range cmd.Commands() {
			if below.Parent().Name() != "completion" { // its texts are cobra's
				add(below)
			}
		}
	}
	add(newRoot(&global{}))
	golden(t, "help.txt", all.String())
}

// TestGoldenErrors runs the lines of testdata/commands.txt on a machine without a daemon and without files of toold.
func TestGoldenErrors(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	commands := must.Get(os.ReadFile("testdata/commands.txt"))(t)
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "TOOLD_") || strings.HasPrefix(name, "XDG_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	var all strings.Builder
	for line := range strings.Lines(string(commands)) {
		said, code := played(t, dir, strings.Fields(line))
		fmt.Fprintf(&all, "$ toold %s%s[%d]\n", line, strings.ReplaceAll(said, dir, "$DIR"), code)
	}
	golden(t, "errors.txt", all.String())
}

// played runs the program in a workspace below dir, and returns what it prints and its exit code.
func played(t *testing.T, dir string, args []string) (said string, code int) {
	t.Helper()
	workspace := filepath.Join(dir, "ws")
	out, err := os.Create(filepath.Join(dir, "out"))
	if err == nil {
		err = os.MkdirAll(workspace, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in := must.Get(os.Open(os.DevNull))(t)
	defer in.Close()
	t.Chdir(workspace)
	code = run(context.Background(), args, console.Console{In: in, Out: out, Err: out})
	text := must.Get(os.ReadFile(out.Name()))(t)
	return string(text), code
}
