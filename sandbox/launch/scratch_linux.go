package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// scratch is the temporary directory of a command in tier C, which has no private /tmp; "" = none. TMPDIR names it.
type scratch string

// newScratch creates the directory and makes it writable for the command. It creates none if the user has set TMPDIR
// for commands.
func newScratch(p sandbox.Profile, spec *helper.Spec) (scratch, error) {
	at := slices.Index(spec.Env, "TMPDIR=/tmp")
	confined := p.Mode != sandbox.FullAccess && p.Tier == sandbox.TierC
	if !confined || at < 0 || p.InRoots("/tmp") {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "toold-call-")
	if err == nil {
		dir, err = paths.Resolve(dir)
	}
	if err != nil {
		return "", fmt.Errorf("cannot make a directory for temporary files: %w", err)
	}
	spec.Env = slices.Clone(spec.Env)
	spec.Env[at] = "TMPDIR=" + dir
	spec.Roots = append(spec.Roots, helper.Root{Path: dir, Writable: true})
	return scratch(dir), nil
}

func (s scratch) remove() {
	if s == "" {
		return
	}
	dir, err := nofollow.Open(filepath.Dir(string(s)), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	_ = nofollow.RemoveAll(dir, filepath.Base(string(s)))
}
