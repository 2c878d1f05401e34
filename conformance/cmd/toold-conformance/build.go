//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/toold/toold"

// built is what was made to play.
type built struct {
	dir      string // is removed at the end
	cases    string // the directory of the case files
	programs map[string]string
}

// build builds the helper of the escape cases, and toold unless TOOLD_BIN names it.
func build(ctx context.Context, o options) (b built, err error) {
	// Not below /tmp: some implementations give commands another one.
	if b.dir, err = os.MkdirTemp("/var/tmp", "toold-conformance-"); err != nil {
		return b, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(b.dir)
		}
	}()
	if err := os.Chmod(b.dir, 0o755); err != nil { // an ordinary user attacks
		return b, err
	}
	if b.cases = o.cases; b.cases == "" {
		out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", module+"/conformance/suite").Output()
		if err != nil {
			return b, fmt.Errorf("cannot find the case files (-cases names their folder): %w", err)
		}
		b.cases = filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "testdata")
	}
	b.programs = map[string]string{}
	sources := map[string]string{}
	if slices.Contains(o.suites, "escape") {
		sources["e"] = module + "/conformance/testdata/escape"
	}
	if slices.Contains(o.targets, "toold") {
		if named := os.Getenv("TOOLD_BIN"); named == "" {
			sources["toold"] = module + "/cmd/toold"
		} else if b.programs["toold"], err = filepath.Abs(named); err != nil {
			return b, err
		}
	}
	for name, source := range sources {
		b.programs[name] = filepath.Join(b.dir, name)
		cmd := exec.CommandContext(ctx, "go", "build", "-o", b.programs[name], source)
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return b, fmt.Errorf("cannot build %s: %w\n%s", source, err, out)
		}
	}
	return b, nil
}
