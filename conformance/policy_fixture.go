//go:build linux

package conformance

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// fixtureDirs are the directories that the placeholders of policy cases stand for.
type fixtureDirs struct{ ws, home, out string }

func (p fixtureDirs) fill(text string) string {
	return strings.NewReplacer("@WS@", p.ws, "@HOME@", p.home, "@OUT@", p.out).Replace(text)
}

// treeEntry is a file or a symbolic link of the fixture.
type treeEntry struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Link    string `json:"link"`
	Mode    string `json:"mode"` // octal; 0644 when absent
}

// buildTree makes the tree that the policy cases are about, below base: the
// entries of policy-fixture.json, and what stands there as "git", "archives" and
// "big". The commands of the cases do not run, but toold looks at the files that
// they name.
func buildTree(ctx context.Context, base, fixture string) (fixtureDirs, error) {
	base, err := filepath.EvalSymlinks(base)
	if err != nil {
		return fixtureDirs{}, err
	}
	p := fixtureDirs{ws: filepath.Join(base, "ws"), home: filepath.Join(base, "home"), out: filepath.Join(base, "out")}
	for _, dir := range []string{p.ws, p.home, p.out} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return p, err
		}
	}
	src, err := os.ReadFile(fixture)
	if err != nil {
		return p, err
	}
	var tree struct {
		Entries []treeEntry `json:"entries"`
	}
	if err := json.Unmarshal([]byte(p.fill(string(src))), &tree); err != nil {
		return p, err
	}
	for _, e := range tree.Entries {
		if err := e.make(); err != nil {
			return p, fmt.Errorf("cannot make %s: %w", e.Path, err)
		}
	}
	return p, errors.Join(p.archives(), p.big(ctx), p.repositories(ctx))
}

func (e treeEntry) make() error {
	if err := os.MkdirAll(filepath.Dir(e.Path), 0o755); err != nil {
		return err
	}
	if e.Link != "" {
		return os.Symlink(e.Link, e.Path)
	}
	mode := uint64(0o644)
	if e.Mode != "" {
		var err error
		if mode, err = strconv.ParseUint(e.Mode, 8, 32); err != nil {
			return err
		}
	}
	return os.WriteFile(e.Path, []byte(e.Content), os.FileMode(mode))
}

// archives makes x.tar, x.tgz and x.zip with README.md, and abs.tar with an
// absolute name.
func (p fixtureDirs) archives() error {
	readme, err := os.ReadFile(filepath.Join(p.ws, "README.md"))
	if err != nil {
		return err
	}
	plain, err := tarOf("README.md", readme)
	if err != nil {
		return err
	}
	absolute, err := tarOf(filepath.Join(p.out, "pwned"), nil)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	gz.Write(plain)
	if err := gz.Close(); err != nil {
		return err
	}
	var zipped bytes.Buffer
	z := zip.NewWriter(&zipped)
	f, err := z.Create("README.md")
	if err != nil {
		return err
	}
	f.Write(readme)
	if err := z.Close(); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"x.tar": plain, "x.tgz": packed.Bytes(), "x.zip": zipped.Bytes(), "abs.tar": absolute} {
		if err := os.WriteFile(filepath.Join(p.ws, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func tarOf(name string, data []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return nil, err
	}
	w.Write(data)
	err := w.Close()
	return out.Bytes(), err
}

// big makes big.txt and, where there is a C compiler, evil.so.
func (p fixtureDirs) big(ctx context.Context) error {
	var numbers bytes.Buffer
	for n := range 60000 {
		fmt.Fprintln(&numbers, n+1)
	}
	if err := os.WriteFile(filepath.Join(p.ws, "big.txt"), numbers.Bytes(), 0o644); err != nil {
		return err
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, cc, "-shared", "-fPIC", "-x", "c", "-o", filepath.Join(p.ws, "evil.so"), "-")
	cmd.Stdin = strings.NewReader("#include <stdio.h>\n__attribute__((constructor)) static void f(void) { puts(\"PRELOADED\"); }\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot make evil.so: %w\n%s", err, out)
	}
	return nil
}

// repositories makes the workspace's own repository, its remote, and those whose
// configuration names a command.
func (p fixtureDirs) repositories(ctx context.Context) error {
	trap := "touch " + p.out + "/pwned; :"
	steps := [][]string{
		{p.out, "init", "-q", "--bare", "remote.git"},
		{p.ws, "init", "-q", "-b", "main"},
		{p.ws, "add", "-A"},
		{p.ws, "commit", "-q", "-m", "first"},
		{p.ws, "+", "README.md", "src/util.go"},
		{p.ws, "commit", "-q", "-a", "-m", "second"},
		{p.ws, "branch", "side"},
		{p.ws, "tag", "v1.0"},
		{p.ws, "+", "main.go"},
		{p.ws, "remote", "add", "origin", p.out + "/remote.git"},
		{p.out, "init", "-q", "evilrepo"},
		{p.out + "/evilrepo", "config", "core.fsmonitor", trap},
		{p.ws, "init", "-q", "nested"},
		{p.ws + "/nested", "config", "core.fsmonitor", trap},
		{p.ws, "init", "-q", "--bare", "bare"},
		{p.ws, "config", "-f", "bare/config", "core.bare", "false"},
		{p.ws, "config", "-f", "bare/config", "core.worktree", "."},
		{p.ws, "config", "-f", "bare/config", "core.fsmonitor", trap},
	}
	for _, s := range steps {
		if err := p.gitStep(ctx, s[0], s[1:]); err != nil {
			return err
		}
	}
	return nil
}

// gitStep runs git in a directory; "+" changes the files that follow it instead.
func (p fixtureDirs) gitStep(ctx context.Context, dir string, args []string) error {
	if args[0] == "+" {
		for _, name := range args[1:] {
			if err := appendLine(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		return nil
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func appendLine(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("// changed\n")
	return errors.Join(err, f.Close())
}
