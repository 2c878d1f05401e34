package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/service"
)

// The name of a directory is written into the unit, and agents name directories.
func TestNoDirectoryWritesSettingsOfTheUnit(t *testing.T) {
	bin := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(bin, "systemctl"), []byte("#!/bin/sh\necho failed\n"), 0o755))
	t.Setenv("PATH", bin)
	for _, name := range []string{"a\nExecStartPre=/bin/sh -c id\nX=", "a\r", "a\\", "a "} {
		dir := filepath.Join(t.TempDir(), name)
		must.Do(t, os.MkdirAll(dir, 0o700))
		for _, o := range []service.Options{{StateDir: t.TempDir(), Dir: dir}, {StateDir: dir, Dir: t.TempDir()}} {
			o.Command = []string{"/bin/false"}
			_, err := service.Start(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), "rename it") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}
