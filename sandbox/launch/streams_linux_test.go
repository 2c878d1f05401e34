package launch

import (
	"os"
	"path/filepath"
	"testing"
)

// Streams are the standard streams of a command that a test starts: no input, and one
// file for all output. The tests outside of the package use them too.
type Streams struct{ Null, Out *os.File }

// NewStreams opens streams, which the end of the test closes.
func NewStreams(t *testing.T) Streams {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	return Streams{null, out}
}

// Printed is what was written until now.
func (s Streams) Printed(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(s.Out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
