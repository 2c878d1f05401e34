// Package toold_test checks the house rules that a machine can check, on the
// source files: no program is run and nothing is built.
package toold_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toold/toold/internal/race"
)

func TestMain(m *testing.M) {
	if race.Enabled {
		fmt.Println("skipped: these tests read text, in which the race detector finds nothing")
		return
	}
	m.Run()
}

const (
	modulePath = "github.com/toold/toold"
	lazyregexp = modulePath + "/internal/lazyregexp"
)

// row is what one package may import.
type row struct {
	dir      string
	packages []string // of toold; each is above in the table
	modules  []string // of others; see owners
}

// layers is the map of the project: imports go upwards in this table only, and
// only where a row says so. A new import goes here first, with a reason in the
// commit.
var layers = []row{
	{"internal/lazyregexp", nil, nil},
	{"internal/loopback", nil, nil},
	{"internal/display", nil, []string{"x/sys"}},
	{"internal/paths", nil, nil},
	{"internal/gitconfig", nil, nil},
	{"shell/proc", []string{"internal/paths"}, nil},
	{"internal/spell", nil, nil},
	{"internal/table", nil, nil},
	{"internal/strict", nil, nil},
	{"internal/must", nil, []string{"go-cmp"}},
	{"internal/race", nil, nil},
	{"internal/rerun", nil, nil},
	{"internal/redact", nil, nil},
	{"message", []string{"internal/display", "internal/spell", "internal/strict"}, []string{"jsonschema-go"}},
	{"shell/programs", []string{"internal/spell"}, nil},
	{"policy", []string{"internal/redact", "shell/programs"}, []string{"shlex", "doublestar"}},
	{"sandbox/internal/nofollow", nil, []string{"x/sys"}},
	{"policy/check", []string{"policy", "shell/programs"}, nil},
	{"sandbox/internal/fileops", []string{"internal/paths", "sandbox/internal/nofollow"}, []string{"x/sys"}},
	{"sandbox/internal/plan", nil, []string{"x/sys"}},
	{"sandbox/internal/helper", []string{"internal/paths", "sandbox/internal/fileops", "sandbox/internal/plan"}, []string{"go-landlock", "x/net", "x/sys", "psx"}},
	{"sandbox/internal/snapshot", nil, []string{"x/sys"}},
	{"sandbox/cgroup", nil, []string{"x/sys"}},
	{"sandbox/caches", []string{"internal/paths", "sandbox/internal/helper", "sandbox/internal/nofollow"}, []string{"x/sys"}},
	{"sandbox", []string{"internal/paths", "sandbox/caches", "sandbox/cgroup"}, nil},
	{"sandbox/launch", []string{"internal/paths", "sandbox", "sandbox/cgroup", "sandbox/internal/helper", "sandbox/internal/nofollow", "sandbox/internal/snapshot"}, []string{"x/sys"}},
	{"sandbox/fileworker", []string{"internal/paths", "sandbox", "sandbox/internal/fileops", "sandbox/internal/snapshot", "sandbox/launch"}, []string{"x/sys"}},
	{"sandbox/egress", []string{"internal/loopback"}, []string{"x/net/dns"}},
	{"sandbox/quarantine", []string{"sandbox/internal/nofollow"}, []string{"x/sys"}},
	{"sandbox/protect", []string{"internal/redact", "sandbox/internal/nofollow", "sandbox/quarantine"}, []string{"x/sys"}},
	{"sandbox/masks", []string{"internal/paths", "policy", "sandbox", "sandbox/internal/nofollow", "sandbox/protect"}, []string{"x/sys"}},
	{"sandbox/escalation", []string{"internal/paths", "sandbox", "sandbox/launch", "sandbox/egress"}, nil},
	{"internal/approval", nil, nil},
	{"internal/statedir", nil, []string{"x/sys"}},
	{"internal/service", []string{"internal/statedir"}, nil},
	{"internal/tokens", []string{"internal/display"}, nil},
	{"internal/edit", []string{"internal/strict"}, []string{"go-toml", "go-yaml", "hujson"}},
	{"internal/workspaces", []string{"internal/display", "internal/paths", "internal/statedir"}, nil},

	{"executor", []string{"internal/paths", "sandbox", "sandbox/launch"}, []string{"x/sys"}},
	{"tools/argument", []string{"internal/redact", "internal/spell", "internal/strict"}, nil},
	{"tools", []string{"executor", "internal/spell", "internal/strict", "policy", "sandbox", "sandbox/escalation", "tools/argument", "sandbox/launch"}, nil},
	{"client", []string{"internal/loopback", "message"}, []string{"websocket"}},
	{"internal/journal/chain", []string{"internal/paths"}, []string{"x/sys"}},
	{"internal/journal/columns", nil, nil},
	{"internal/journal/legacy", nil, []string{"sqlite"}},
	{"internal/journal/seal", []string{"internal/statedir"}, nil},
	{"internal/journal", []string{"internal/display", "internal/paths", "message", "internal/redact", "internal/strict", "internal/statedir", "internal/journal/chain", "internal/journal/columns", "internal/journal/legacy", "internal/journal/seal"}, nil},
	{"internal/postgres", []string{"internal/display"}, []string{"pgx"}},
	{"internal/anchor", []string{"internal/journal/seal", "internal/postgres"}, nil},
	{"internal/store", []string{"internal/journal", "internal/journal/chain", "internal/journal/seal", "internal/postgres"}, nil},
	{"internal/config", []string{"executor", "internal/paths", "internal/spell", "internal/statedir", "policy", "sandbox", "sandbox/egress", "sandbox/escalation", "sandbox/caches"}, []string{"go-yaml"}},

	{"shell/texts", nil, []string{"sh"}},
	{"shell/links", []string{"internal/paths", "policy", "shell/programs"}, nil},
	{"shell", []string{"internal/gitconfig", "internal/paths", "internal/table", "policy", "shell/links", "shell/proc", "shell/programs", "shell/texts"}, []string{"sh"}},
	{"tools/bash", []string{"internal/redact", "internal/paths", "internal/display", "shell", "tools", "tools/argument", "policy", "shell/programs", "executor", "sandbox", "sandbox/egress", "sandbox/masks", "sandbox/protect", "sandbox/escalation", "sandbox/launch"}, nil},
	{"tools/files", []string{"internal/redact", "internal/paths", "internal/display", "internal/spell", "tools", "tools/argument", "policy", "sandbox", "sandbox/masks", "sandbox/protect", "sandbox/escalation", "sandbox/fileworker"}, []string{"doublestar", "gotextdiff", "go-udiff"}},
	{"tools/spool", []string{"internal/redact", "tools"}, nil},
	{"tools/calls", []string{"internal/redact", "internal/display", "tools", "tools/argument", "policy", "sandbox"}, nil},
	{"tools/elsewhere", []string{"internal/display", "tools", "tools/argument", "policy", "shell/programs"}, nil},
	{"internal/dispatch", []string{"internal/redact", "internal/paths", "internal/display", "message", "policy", "policy/check", "tools", "tools/argument", "tools/spool", "internal/approval", "internal/workspaces", "internal/journal", "sandbox", "sandbox/escalation", "sandbox/launch"}, []string{"zap"}},

	{"internal/metrics", []string{"message", "internal/dispatch"}, []string{"prometheus"}},
	{"internal/trace", []string{"message", "internal/dispatch"}, []string{"otel"}},
	{"internal/codex", []string{"internal/paths", "message", "tools", "tools/files", "tools/spool", "internal/dispatch", "sandbox"}, nil},
	{"internal/server", []string{"internal/codex", "message", "tools", "tools/spool", "internal/approval", "internal/journal", "internal/dispatch"}, []string{"websocket", "zap"}},

	{"interop/link", []string{"client", "internal/display", "message"}, nil},
	{"interop/claude", []string{"client", "interop/link", "message", "internal/strict"}, nil},
	{"interop/hook", []string{"client", "message", "internal/strict"}, nil},
	{"interop/letta", []string{"interop/hook", "interop/link", "client", "message", "internal/strict"}, []string{"websocket"}},
	{"interop/mcp", []string{"client", "interop/link", "message"}, []string{"go-sdk"}},
	{"interop/connect", []string{"interop/claude", "internal/display", "internal/edit", "internal/loopback", "internal/statedir", "internal/tokens", "tools/files"}, nil},
	{"internal/daemon", []string{
		"internal/paths", "client", "interop/mcp", "message", "policy", "sandbox", "sandbox/caches", "sandbox/cgroup", "sandbox/egress", "sandbox/fileworker", "sandbox/launch", "sandbox/masks", "sandbox/protect", "sandbox/quarantine", "executor", "tools", "tools/bash", "tools/calls", "tools/files", "tools/elsewhere", "tools/spool",
		"internal/approval", "internal/codex", "internal/config", "internal/dispatch", "internal/journal", "internal/loopback", "internal/metrics", "internal/server", "internal/statedir", "internal/store", "internal/tokens", "internal/trace", "internal/workspaces",
	}, []string{"fsnotify", "x/sys", "zap"}},
	{"internal/describe", []string{"internal/display", "message", "sandbox"}, nil},
	{"internal/console", []string{"client", "executor", "internal/describe", "internal/dispatch", "internal/display", "message", "sandbox", "sandbox/escalation", "tools/files"}, nil},
	{"internal/reach", []string{"internal/paths", "client", "internal/config", "internal/console", "internal/daemon", "internal/describe", "internal/loopback", "internal/server", "internal/statedir", "internal/tokens"}, nil},
	{"internal/audit", []string{"internal/anchor", "internal/config", "internal/console", "internal/daemon", "internal/describe", "internal/dispatch", "internal/display", "internal/journal", "internal/journal/seal", "internal/store", "message", "policy", "sandbox/quarantine"}, nil},
	{"internal/doctor", []string{
		"client", "executor", "internal/audit", "internal/config", "internal/console", "internal/daemon", "internal/describe", "internal/journal", "internal/loopback", "internal/reach", "internal/store",
		"sandbox", "sandbox/caches", "sandbox/cgroup", "sandbox/launch", "sandbox/protect", "sandbox/quarantine",
	}, nil},
	{"internal/judge", []string{"internal/audit", "internal/config", "internal/console", "internal/daemon", "internal/describe", "internal/dispatch", "internal/display", "internal/journal", "message", "policy", "policy/check", "tools"}, nil},
	{"internal/onboard", []string{"executor", "internal/config", "internal/console", "internal/describe", "internal/doctor", "internal/reach", "internal/service", "internal/statedir", "internal/tokens", "interop/connect"}, nil},
	{"cmd/toold", []string{
		"client", "executor", "message", "policy", "sandbox/quarantine", "tools",
		"internal/anchor", "internal/audit", "internal/config", "internal/console", "internal/daemon", "internal/describe", "internal/display", "internal/doctor", "internal/journal", "internal/journal/seal", "internal/judge",
		"internal/onboard", "internal/paths", "internal/reach", "internal/server", "internal/service", "internal/spell", "internal/statedir", "internal/store", "internal/tokens", "internal/workspaces",
		"interop/claude", "interop/hook", "interop/letta", "interop/link", "interop/mcp",
	}, []string{"cobra", "zap"}},

	{"conformance/suite", nil, nil},
	{"conformance/suite/escape", []string{"conformance/suite"}, nil},
	{"conformance/suite/execution", []string{"conformance/suite"}, nil},
	{"conformance", []string{"conformance/suite", "conformance/suite/escape", "conformance/suite/execution", "internal/journal"}, []string{"websocket", "go-sdk"}},
	{"conformance/cmd/toold-conformance", []string{"client", "conformance", "conformance/suite", "conformance/suite/escape", "conformance/suite/execution", "message"}, []string{"websocket"}},

	// Directories of tests only.
	{".", nil, nil},
	{"clients", nil, nil},
	{"release", nil, nil},
}

// modules are the import paths behind the short names of the table.
var modules = map[string]string{
	"cobra":         "github.com/spf13/cobra",
	"doublestar":    "github.com/bmatcuk/doublestar/v4",
	"fsnotify":      "github.com/fsnotify/fsnotify",
	"go-cmp":        "github.com/google/go-cmp/cmp",
	"go-landlock":   "github.com/landlock-lsm/go-landlock/landlock/syscall",
	"go-sdk":        "github.com/modelcontextprotocol/go-sdk",   // its packages mcp and auth
	"go-toml":       "github.com/pelletier/go-toml/v2/unstable", // which names the place of each setting
	"go-udiff":      "github.com/aymanbagabas/go-udiff",
	"go-yaml":       "github.com/goccy/go-yaml",
	"gotextdiff":    "github.com/hexops/gotextdiff",
	"hujson":        "github.com/tailscale/hujson",
	"jsonschema-go": "github.com/google/jsonschema-go",
	"otel":          "go.opentelemetry.io/otel",
	"prometheus":    "github.com/prometheus/client_golang/prometheus",
	"psx":           "kernel.org/pub/linux/libs/security/libcap/psx",
	"pgx":           "github.com/jackc/pgx/v5/pgconn", // no other of its packages
	"sh":            "mvdan.cc/sh/v3/syntax",
	"shlex":         "github.com/google/shlex",
	"sqlite":        "modernc.org/sqlite",
	"websocket":     "github.com/gorilla/websocket",
	"x/net":         "golang.org/x/net/bpf",
	"x/net/dns":     "golang.org/x/net/dns/dnsmessage",
	"x/sys":         "golang.org/x/sys",
	"zap":           "go.uber.org/zap",
}

// source is one parsed file.
type source struct {
	name string // from the root, with slashes
	*ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// tree is every Go file of the project by its directory.
type tree struct {
	fset *token.FileSet
	dirs map[string][]source
}

func parse(t *testing.T) tree {
	t.Helper()
	all := tree{token.NewFileSet(), map[string][]source{}}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || base == "dist") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(base, ".go") {
			return nil
		}
		f, err := parser.ParseFile(all.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		all.dirs[path.Dir(name)] = append(all.dirs[path.Dir(name)], source{name, f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// files yields every file, tests included or not.
func (tr tree) files(tests bool) []source {
	var list []source
	for _, dir := range slices.Sorted(maps.Keys(tr.dirs)) {
		for _, s := range tr.dirs[dir] {
			if tests || !s.test() {
				list = append(list, s)
			}
		}
	}
	return list
}

// at is a node's place, as editors take it.
func (tr tree) at(n ast.Node) string { return tr.fset.Position(n.Pos()).String() }

// lines is how many lines a node has.
func (tr tree) lines(n ast.Node) int {
	return tr.fset.Position(n.End()).Line - tr.fset.Position(n.Pos()).Line + 1
}

func TestEveryPackageStandsInTheTable(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	above := map[string]bool{}
	for _, r := range layers {
		if len(tr.dirs[r.dir]) == 0 {
			t.Errorf("the table has a row for %s, which has no Go files", r.dir)
		}
		for _, p := range r.packages {
			if !above[p] {
				t.Errorf("%s may import %s, which does not stand above it in the table", r.dir, p)
			}
		}
		above[r.dir] = true
	}
	for dir := range tr.dirs {
		if !above[dir] {
			t.Errorf("package %s has no row in the table: decide first what it may import", dir)
		}
	}
}

func TestImportsFollowTheTable(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, r := range layers {
		for _, s := range tr.dirs[r.dir] {
			if s.test() {
				continue
			}
			for _, spec := range s.Imports {
				p, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !r.allows(p) {
					t.Errorf("%s: package %s may not import %s", tr.at(spec), r.dir, p)
				}
			}
		}
	}
}

// allows reports whether a row has an import path. The standard library and internal/lazyregexp are free.
func (r row) allows(p string) bool {
	if first, _, _ := strings.Cut(p, "/"); !strings.Contains(first, ".") || p == lazyregexp {
		return true
	}
	if own, ok := strings.CutPrefix(p, modulePath+"/"); ok {
		return slices.Contains(r.packages, own)
	}
	return slices.ContainsFunc(r.modules, func(m string) bool {
		return p == modules[m] || strings.HasPrefix(p, modules[m]+"/")
	})
}

func TestTheTwoDiffModulesMeetInOneFile(t *testing.T) {
	t.Parallel()
	for _, s := range parse(t).dirs["tools/files"] {
		for _, spec := range s.Imports {
			if strings.Contains(spec.Path.Value, "diff") && s.name != "tools/files/diff.go" && !s.test() {
				t.Errorf("%s imports %s; only diff.go does", s.name, spec.Path.Value)
			}
		}
	}
}

func TestEveryModuleHasAReason(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, p := range modules {
		named[p] = true
	}
	gomod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(gomod)) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") { // an indirect one has a comment
			named[fields[0]] = true
		}
	}
	for p := range named {
		if !hasReason(string(text), p) {
			t.Errorf("CONTRIBUTING.md has no line for the module of %s", p)
		}
	}
}

// hasReason looks for a table line that names the module of an import path.
func hasReason(text, importPath string) bool {
	for line := range strings.Lines(text) {
		cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
		if ok && strings.HasPrefix(line, "| `") && (importPath == cell || strings.HasPrefix(importPath, cell+"/")) {
			return true
		}
	}
	return false
}
