package dispatch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// While a person decides, another call may change what the question is about.
func TestWhatChangesWhileAPersonDecidesDoesNotRun(t *testing.T) {
	t.Parallel()
	write := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	rename := func(from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			must.Do(t, os.RemoveAll(filepath.Join(dir, to)))
			must.Do(t, os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)))
		}
	}
	link := func(to, name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			must.Do(t, os.RemoveAll(filepath.Join(dir, name)))
			must.Do(t, os.Symlink(to, filepath.Join(dir, name)))
		}
	}
	// A file as large, and of the same time.
	alike := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			info := must.Get(os.Stat(filepath.Join(dir, name)))(t)
			write(name, text)(t, dir)
			must.Do(t, os.Chtimes(filepath.Join(dir, name), info.ModTime(), info.ModTime()))
		}
	}
	nothing := func(*testing.T, string) {}
	read := func(path, source string) policy.Effect {
		return policy.Effect{Kind: policy.Read, Path: path, Canonical: path, Source: source}
	}
	written := func(path, source string) policy.Effect {
		return policy.Effect{Kind: policy.Write, Path: path, Canonical: path, Source: source}
	}
	run := func(words ...string) policy.Effect {
		e := policy.Effect{Kind: policy.Exec, Dirs: []string{"."}, Source: "asked"}
		for _, w := range words {
			e.Argv = append(e.Argv, policy.Word{Text: w})
		}
		return e
	}
	for name, tc := range map[string]struct {
		does    []policy.Effect // paths are below the workspace
		meant   func(t *testing.T, dir string)
		changed bool
	}{
		"nothing":                              {[]policy.Effect{run("./run.sh"), read("in.txt", "asked"), written("out", "asked")}, nothing, false},
		"a program":                            {[]policy.Effect{run("./run.sh")}, write("run.sh", "evil"), true},
		"a program beside a large file":        {[]policy.Effect{run("./run.sh"), read("a.bin", "asked")}, alike("run.sh", "evil"), true},
		"a program, by the same text":          {[]policy.Effect{run("./run.sh")}, write("run.sh", "good"), false},
		"the script of an interpreter":         {[]policy.Effect{run("sh", "run.sh"), read("run.sh", "asked")}, write("run.sh", "evil"), true},
		"what a redirection reads":             {[]policy.Effect{run("sh"), read("run.sh", "< run.sh")}, write("run.sh", "evil"), true},
		"what a redirection writes":            {[]policy.Effect{run("sh"), written("out", "2> out")}, link("in.txt", "out"), true},
		"more in what a redirection writes":    {[]policy.Effect{run("sh"), written("in.txt", ">> in.txt")}, write("in.txt", "more"), false},
		"a program for a link":                 {[]policy.Effect{run("./run.sh")}, link("in.txt", "run.sh"), true},
		"a link before dots":                   {[]policy.Effect{run("sh", "up/../run.sh"), read("run.sh", "asked")}, link("/etc", "up"), true},
		"what lies behind a link and dots":     {[]policy.Effect{run("sh"), {Kind: policy.Write, Path: "/x", Canonical: "in.txt", Source: "asked"}}, rename("keep", "in.txt"), true},
		"a directory to remove, for a link":    {[]policy.Effect{run("rm", "-r", "drafts"), written("drafts", "asked")}, link("keep", "drafts"), true},
		"a directory to remove, for another":   {[]policy.Effect{run("rm", "-r", "drafts"), written("drafts", "asked")}, rename("keep", "drafts"), true},
		"a directory above what is removed":    {[]policy.Effect{run("rm", "drafts/x"), written("drafts/x", "asked")}, rename("keep", "drafts"), true},
		"what is written newly, for a link":    {[]policy.Effect{run("curl"), written("new", "asked")}, link("keep", "new"), true},
		"what a command reads that is allowed": {[]policy.Effect{run("curl"), read("in.txt", "cat in.txt")}, write("in.txt", "more"), false},
		"the content of what a person reads":   {[]policy.Effect{read("ask.txt", "cat ask.txt")}, write("ask.txt", "more"), false},
		"what a person reads for a link":       {[]policy.Effect{read("ask.txt", "cat ask.txt")}, link("in.txt", "ask.txt"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			for file, text := range map[string]string{"run.sh": "good", "in.txt": "in", "ask.txt": "ask", "drafts/x": "draft", "keep/x": "dear"} {
				must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
				write(file, text)(t, dir)
			}
			write("a.bin", "")(t, dir)
			must.Do(t, os.Truncate(filepath.Join(dir, "a.bin"), 65<<20)) // no bytes on the disk
			tool := &probe{}
			for _, e := range tc.does {
				if e.Path == "/x" { // as if that were up/../in.txt
					e.Canonical = filepath.Join(dir, e.Canonical)
				} else if e.Path != "" && !filepath.IsAbs(e.Path) {
					e.Path = filepath.Join(dir, e.Path)
					e.Canonical = e.Path
				}
				if e.Kind == policy.Exec {
					e.Dirs = []string{dir}
				}
				tool.before = append(tool.before, e)
			}
			b, h := newBench(t, policy.Ask, tool), newHesitant()
			defer b.approvals.Join(h)()
			b.workspace.opt.Root = dir
			tool.does, tool.before = tool.before[0], tool.before[1:]
			b.SetPolicy(compiled(t, policy.File{
				Name: "test", Defaults: policy.Defaults{Bash: policy.Ask, Read: policy.Allow, Write: policy.Allow, Unanalysable: policy.Ask},
				Paths: []policy.Rule{{ID: "asks", Action: policy.Ask, Paths: []string{dir + "/ask.txt"}}},
			}))
			w, wake, question := b.ask(h, "call_1")
			tc.meant(t, dir)
			b.resolve(t, question.ID, approval.Verdict{Approve: true, By: "ada"})
			f := final(t, w, wake)
			if tc.changed {
				wantError(t, f, message.Denied, "has changed since a person was asked")
			} else if f.Return.Status != "success" {
				t.Errorf("got %s", f.Return.Result)
			}
			if ran := tool.ran.Load() != 0; ran == tc.changed {
				t.Errorf("ran: %v", ran)
			}
		})
	}
}

// In a wider sandbox the parts of a call that are allowed count, too.
func TestWhatAWiderSandboxIsGivenToHasNotChanged(t *testing.T) {
	t.Parallel()
	for network, status := range map[string]string{"": "success", "full": "error"} {
		dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
		script := filepath.Join(dir, "run.sh")
		must.Do(t, os.WriteFile(script, []byte("good"), 0o600))
		b, h := widening(t, &probe{confined: true})
		b.workspace.opt.Root = dir
		b.tool.before = []policy.Effect{{Kind: policy.Exec, Argv: []policy.Word{{Text: script}}, Dirs: []string{dir}, Source: script}}
		b.SetPolicy(compiled(t, policy.File{Name: "test", Defaults: policy.Defaults{Bash: policy.Allow, Read: policy.Ask, Unanalysable: policy.Ask}}))
		w, wake, question := b.ask(h, "call_1")
		must.Do(t, os.WriteFile(script, []byte("evil"), 0o600))
		b.resolve(t, question.ID, yes(network))
		if ret := final(t, w, wake).Return; ret.Status != status {
			t.Errorf("widened by %q: %s", network, ret.Result)
		}
	}
}
