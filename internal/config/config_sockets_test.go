package config

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSocketsThatCallsMayReachAreNamed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, name := range []string{"agent.sock", "own.sock"} {
		l, err := net.Listen("unix", filepath.Join(m.home, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	got, err := m.loadText(t, "version: 1\nsandbox: {unix_sockets: [~/agent.sock, ~/agent.sock, ~/none.sock]}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(m.home, "agent.sock"), filepath.Join(m.home, "none.sock")}
	if diff := cmp.Diff(want, got.Sandbox.Sockets); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(strings.Join(got.Warnings, "\n"), "none.sock does not exist") {
		t.Errorf("no word about the missing one: %q", got.Warnings)
	}
	m.write(t, filepath.Join(m.home, "file"), "")
	for text, want := range map[string]string{
		"sandbox: {unix_sockets: [~/file]}":                         "is no socket",
		"sandbox: {unix_sockets: [~/own.sock]}\nsocket: ~/own.sock": "toold itself",
	} {
		if _, err := m.loadText(t, "version: 1\n"+text+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
