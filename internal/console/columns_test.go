package console

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/internal/must"
)

// A name in a list, such as that of a file which a call made, makes no row or column of its own.
func TestACellIsOneCell(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	out := must.Get(os.Create(path))(t)
	defer out.Close()
	must.Do(t, Console{Out: out}.Columns([][]string{{"1", "a\n2\tforged"}, {"3", "b"}}))
	if got, want := string(must.Get(os.ReadFile(path))(t)), "1  a\\n2\\tforged\n3  b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
