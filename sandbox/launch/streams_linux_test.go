package launch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/internal/must"
)

// Streams are the standard streams of a command that a test starts: no input, and one
// file for all output. The tests outside of the package use them too.
type Streams struct{ Null, Out *os.File }

// NewStreams opens streams, which the end of the test closes.
func NewStreams(t *testing.T) Streams {
	t.Helper()
	out := must.Get(os.Create(filepath.Join(t.TempDir(), "out")))(t)
	t.Cleanup(func() { out.Close() })
	null := must.Get(os.Open(os.DevNull))(t)
	t.Cleanup(func() { null.Close() })
	return Streams{null, out}
}

// Printed is what was written until now.
func (s Streams) Printed(t *testing.T) string {
	t.Helper()
	b := must.Get(os.ReadFile(s.Out.Name()))(t)
	return string(b)
}
