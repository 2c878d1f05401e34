package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/sandbox/quarantine"
)

// removedFile has a copy of a file that a call left in a workspace.
func removedFile(t *testing.T, dir string) {
	t.Helper()
	ws := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(ws, ".envrc"), []byte("run this\n"), 0o600))
	at, err := os.Open(ws)
	noError(t, err)
	defer at.Close()
	_, err = quarantine.NewBatch(filepath.Join(dir, "quarantine")).Take(int(at.Fd()), ".envrc", filepath.Join(ws, ".envrc"))
	noError(t, err)
}
