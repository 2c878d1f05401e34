package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAPolicyThatIsAPipeIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	o := options(t)
	pipe := filepath.Join(o.Workspace, WorkspacePolicy)
	if err := os.MkdirAll(filepath.Dir(pipe), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"", pipe} {
		if _, err := LoadPolicy(user, o); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("policy %q: got %v", user, err)
		}
	}
}

func TestAPolicyThatNeverEndsIsRefused(t *testing.T) {
	t.Parallel()
	o := options(t)
	path := filepath.Join(o.Workspace, "huge.yaml")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 40); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	f.Close()
	if _, err := LoadPolicy(path, o); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}
