package masks_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// However late the watcher is, a directory that takes the place of another is looked through.
func TestADirectoryThatReplacesAnotherIsMasked(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Paths: []policy.Rule{rule("dotenv", policy.Ask, nil, "${workspace}/**/.env")}}, "sub/.env")
	sub := filepath.Join(p.ws, "sub")
	for range 300 {
		must.Do(t, os.Rename(sub, sub+".old"), os.Mkdir(sub, 0o700),
			os.WriteFile(sub+"/.env", []byte("NEWER\n"), 0o600), os.RemoveAll(sub+".old"))
		if got := p.masked(p.policy); len(got) != 1 || got[0] != "sub/.env" {
			t.Fatalf("masked are %v", got)
		}
	}
}
