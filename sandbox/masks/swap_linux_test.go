package masks_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/policy"
)

// However late the watcher is, a directory that takes the place of another is looked through.
func TestADirectoryThatReplacesAnotherIsMasked(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Paths: []policy.Rule{rule("dotenv", policy.Ask, nil, "${workspace}/**/.env")}}, "sub/.env")
	sub := filepath.Join(p.ws, "sub")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		must(os.Rename(sub, sub+".old"))
		must(os.Mkdir(sub, 0o700))
		must(os.WriteFile(sub+"/.env", []byte("NEWER\n"), 0o600))
		must(os.RemoveAll(sub + ".old"))
		if got := p.masked(p.policy); len(got) != 1 || got[0] != "sub/.env" {
			t.Fatalf("masked are %v", got)
		}
	}
}
