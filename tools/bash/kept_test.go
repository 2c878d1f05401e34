package bash

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/shell/programs"
)

// A question about a removal is for what nobody could bring back.
func TestRemovingWhatCanBeHadAgainIsMarked(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", ws, "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Skipf("git %v: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(ws, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for name, text := range map[string]string{
		".gitignore": "/build/\ndist\nprivate/\n", "held/a.txt": "a", "held/deep/b.txt": "b", "packed/c.txt": "c", "changed/d.txt": "d", "mixed/e.txt": "e",
		"build/out/x": "x", "dist/y": "y", "target/z": "z", "private/key": "k", "web/node_modules/m/n.js": "n", "empty/none": "",
		"new/f.txt": "f", "compiled/a.pyc": "p", "scripts/build/run.sh": "r",
		"named/.gitignore": "obj\n", "named/obj/o": "o", // by an earlier call, perhaps
	} {
		write(name, text)
	}
	git("init", "-q")
	git("add", "packed")
	git("commit", "-qm", "packed")
	long := strings.Repeat("a line of a long file, which git packs as a difference\n", 2000)
	for i := range 4 {
		write("packed/long"+strconv.Itoa(i), fmt.Sprint(i, long, i, "\n", long[:i*30000]))
	}
	git("add", "packed")
	git("commit", "-qm", "differences")
	git("gc", "-q")
	write("forged/only.txt", "only here")
	name := git("hash-object", "forged/only.txt")
	write(".git/objects/"+name[:2]+"/"+name[2:], "")
	git("add", ".gitignore", "held", "changed", "mixed/e.txt")
	git("commit", "-qm", "loose")
	for _, name := range []string{"changed/d.txt", "mixed/new.txt"} {
		write(name, "work that is only here")
	}
	tool := New(Options{Workspace: ws, Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws}})
	for script, kept := range map[string]bool{
		"rm -rf held": true, "rm -rf held/deep packed": true, "cd held && rm -r deep": true, "rm -rf build dist": true, "rm -rf web": true, "rm -rf web/node_modules": true,
		"rm -rf empty": true, "rm -rf nothing-there": true, "rm -rf compiled": true, "rm -rf /tmp/none-of-the-machine": true, "rm -rf " + ws + "/held": true, "timeout 5 rm -rf held": true,
		"rm -rf changed": false, "rm -rf mixed": false, "rm -rf target": false, "rm -rf private": false, "rm -rf new": false, "rm -rf held new": false, "rm -rf forged": false, "rm -rf .": false, "rm -rf scripts": false, "rm -rf named/obj": false,
		"rm -rf \"$x\"": false, "rm -rf held/$(date)": false, "rm -rf /": false, "rm -rf .git": false, "git reset --hard": false, "truncate -s 0 new/f.txt": false, "truncate -s 0 held/a.txt": true,
		"find . -name '*.pyc' -exec rm {} +": true, "find new -type f -exec rm -f {} +": false, "find new -type f | xargs rm -f": false, "git checkout held": false,
		"mv new/f.txt moved": true, "mv new held/": true, "mv -t held new/f.txt": true, "mv held /tmp/x": true, "mv /tmp/x new": true, "cd new && mv f.txt g.txt": true,
		"for f in *.txt; do mv \"$f\" \"${f%.txt}.md\"; done": true, "find new -name '*.txt' -exec mv {} held/ \\;": true, "cd \"$(git rev-parse --show-toplevel)\" && mv new old": true,
		"tar --remove-files -cf new.tar new": true, "rsync -a --remove-source-files new/ held/": true, "zip -rm new.zip new": true, "mv *.txt held/": true,
		"mv new /tmp/x": false, "mkdir /tmp/t && mv held new /tmp/t": false, "mv * /tmp/y": false, "mv new /var/tmp/y/": false, "mv -t /tmp/x new": false, "mv new/f.txt mixed/new.txt /tmp/y/": false,
		"tar --remove-files -cf /tmp/x.tar new": false, "tar cf /tmp/x.tar --remove-files new": false, "tar --remove-files -cf /dev/null new": false, "zip -rm /tmp/x.zip new": false,
		"rsync -a --remove-source-files new/ /tmp/x/": false, "d=$(mktemp -d); mv new \"$d\"": false, "cd /tmp; mv " + ws + "/new .": false,
		"find new -type f -exec mv {} /tmp/x/ \\;": false, "ls new | xargs mv -t /tmp/x": false, "d=$(mktemp -d); for f in *; do mv \"$f\" \"$d\"; done": false, "timeout 5 mv new /tmp/x": false,
		"rm -rf held/*": true, "rm -rf held/*.txt build/*": true, "rm -rf dist/*": true, "rm -rf nosuch/*": true, "rm -rf web/node_modules/*": true, "cd held && rm -rf deep/*": true,
		"rm -rf new/*": false, "rm -rf */": false, "rm -rf *": false, "rm -rf ./*": false, "rm -rf h*/*": false, "rm -rf held/.*": false, "rm -rf build/../new/*": false, "rm -rf dist/$(date)/*": false, "rm -rf \"dist\"/*": true, "rm -rf private/*": false,
		// A later call may remove it unasked.
		"mv new build": false, "mv new build/": false, "mv new/f.txt dist/sub/f.txt": false, "mv new node_modules": false, "mv new web/node_modules/": false, "mv -t build new": false, "mv *.txt build/": false, "rsync -a --remove-source-files new/ dist/": false,
		"mv held build": true, "mv build dist": true, "mv build/out/x dist/": true, "mv dist old": true, "mv new built": true, "mv new scripts/build": true,
		// The script itself brought it there.
		"mv new gone; rm -rf gone": false, "mkdir t; mv new t/; rm -rf t": false, "mkdir -p node_modules; mv new node_modules/ && rm -rf node_modules": false,
		"ln -s new l; rm -rf l/": false, "mv new gone; find gone -delete": false, "git mv new gone; rm -rf gone": false, "for i in 1 2; do rm -rf x; mv new x; done": false,
		"rsync -a --remove-source-files new/ t/; rm -rf t": false, "mv new \"$(date)\"; rm -rf none": false,
		"mv held old; rm -rf old": true, "mv new x && mv x node_modules/ && rm -rf node_modules": false, "mv new node_modules && mv node_modules /tmp/": false,
		"ln -s node_modules nm; mv new nm/; rm -rf node_modules": false, "ln -s held h; rm -rf build": false, "mv build b; rm -rf b dist": true, "cp -r new t; rm -rf t": true, "mv new other; rm -rf held": false,
		"find . -name '*.pyc' -delete": true, "find . -name '*.txt' -delete": false, "find . -iname '*.TXT' -delete": false, "find new -iname '*.TXT' -exec rm {} +": false, "find held -delete": true, "find . -delete": false,
	} {
		inv := must.Get(tool.Build(json.RawMessage(fmt.Sprintf(`{"command":%q}`, script))))(t)
		got, lost := false, false
		for _, e := range inv.Effects() {
			if e.Kind == policy.Exec && strings.Contains("rm truncate find mv tar zip rsync", e.Argv[0].Text) && programs.Parse(e.Argv).Loses != "" {
				got, lost = got || e.Kept, lost || !e.Kept
			}
		}
		if got = got && !lost; got != kept {
			t.Errorf("%s: kept is %v, want %v", script, got, kept)
		}
	}
}

// A .gitignore that includes a path again says that it is work, in whatever order, and so does one that is not git's own.
func TestWhatAGitignoreIncludesAgainIsAskedAbout(t *testing.T) {
	t.Parallel()
	const only = "only here"
	for _, c := range []struct {
		ignores map[string]string // by directory
		path    string
		kept    bool
	}{
		{map[string]string{".": "build"}, "build", true},
		{map[string]string{".": "build\n!build"}, "build", false},
		{map[string]string{".": "!/build/\n/build/"}, "build", false},
		{map[string]string{".": "build\n!b*d  \r"}, "build", false},
		{map[string]string{".": "build\n![ab]uild"}, "build", false},
		{map[string]string{".": "build\n![!x]uild"}, "build", false},
		{map[string]string{".": "build\n![[:lower:]]uild"}, "build", false},
		{map[string]string{".": "build\n!\\build"}, "build", false},
		{map[string]string{".": "build/\n!build/keep"}, "build", false},
		{map[string]string{".": "build/\n!/build/**"}, "build", false},
		{map[string]string{".": "build/\n!**"}, "build", false},
		{map[string]string{".": "build\n!/sub/build"}, "sub/build", false},
		{map[string]string{".": "build\n!/sub/build"}, "build", true},
		{map[string]string{".": "build", "sub": "!build"}, "sub/build", false},
		{map[string]string{".": "!sub/build", "sub": "build"}, "sub/build", false},
		{map[string]string{".": "build\n!a/**/build"}, "a/b/c/build", false},
		{map[string]string{".": "build\n!a/**/build"}, "a/build", false},
		{map[string]string{".": "build\n" + strings.Repeat("# a long file\n", 8<<10) + "!build"}, "build", false},
		{map[string]string{".": "!node_modules"}, "node_modules", false},
		{map[string]string{".": "!node_modules/ours"}, "web/../node_modules", false},
		{map[string]string{".": "node_modules\n!.env.example"}, "node_modules", true},
		// Of Gradle, Visual Studio and others: nothing of the build itself.
		{map[string]string{".": "build/\n!gradle/wrapper/gradle-wrapper.jar\n!**/src/main/**/build/\n!**/src/test/**/build/\n!.env.example\n!*.md"}, "build", true},
		{map[string]string{".": "build/\n!**/src/main/**/build/"}, "src/main/java/build", false},
		{map[string]string{".": "bin\n!src/bin\n!?*.[Cc]ache/"}, "bin", true},
	} {
		ws := t.TempDir()
		for dir, text := range c.ignores {
			must.Do(t, os.MkdirAll(filepath.Join(ws, dir), 0o700))
			must.Do(t, os.WriteFile(filepath.Join(ws, dir, ".gitignore"), []byte(text), 0o600))
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}} {
			cmd := exec.Command("git", append([]string{"-C", ws}, args...)...)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Skipf("git %v: %v %s", args, err, out)
			}
		}
		must.Do(t, os.MkdirAll(filepath.Join(ws, c.path), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(ws, c.path, "keep"), []byte(only), 0o600))
		if got := keeps(t, ws, "rm -rf "+c.path); got != c.kept {
			t.Errorf("%.80q: rm -rf %s: kept is %v", c.ignores, c.path, got)
		}
		for dir := range c.ignores {
			must.Do(t, os.WriteFile(filepath.Join(ws, dir, ".gitignore"), []byte("build\n# by an earlier call\n"), 0o600))
			if base := filepath.Base(c.path); base == "build" && keeps(t, ws, "rm -rf "+c.path) {
				t.Errorf("%.80q: rm -rf %s: kept by a .gitignore that git does not hold", c.ignores, c.path)
			}
		}
	}
}

func keeps(t *testing.T, ws, script string) (kept bool) {
	t.Helper()
	tool := New(Options{Workspace: ws, Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws}})
	inv := must.Get(tool.Build(json.RawMessage(fmt.Sprintf(`{"command":%q}`, script))))(t)
	for _, e := range inv.Effects() {
		kept = kept || e.Kept
	}
	return kept
}

// Of a program that is in no directory of PATH nothing is asked that only the program could
// do, unless a call may put one there.
func TestAProgramThatIsNowhereIsMarked(t *testing.T) {
	t.Parallel()
	ws, bin, free := t.TempDir(), t.TempDir(), t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(bin, "shred"), []byte("#!/bin/sh\n"), 0o700))
	const nowhere = "mkfs.btrfs"
	if _, err := exec.LookPath(nowhere); err == nil {
		t.Skipf("this machine has %s", nowhere)
	}
	profile := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws, Write: []string{free}}
	for _, c := range []struct {
		path, script string
		absent       bool
	}{
		{"/usr/bin:/bin", nowhere + " x", true},
		{"/usr/bin:/bin", "timeout 5 " + nowhere + " x", true},
		{"/usr/bin:/nonexistent/bin", nowhere + " x", true},
		{bin + ":/usr/bin", "shred x", false},
		{free + ":/usr/bin", nowhere + " x", false},
		{ws + "/bin:/usr/bin", nowhere + " x", false},
		{"bin:/usr/bin", nowhere + " x", false},
		{"/usr/bin::/bin", nowhere + " x", false},
		{"", nowhere + " x", false},
		{"/usr/bin", "./" + nowhere + " x", false},
		{"/usr/bin", "PATH=" + ws + "; " + nowhere + " x", false},
		{"/usr/bin", "env PATH=. " + nowhere + " x", false},
		{"/usr/bin", "read PATH < f; " + nowhere + " x", false},
		{"/usr/bin", "kill x", false},
	} {
		tool := New(Options{Workspace: ws, Env: []string{"PATH=" + c.path}, Profile: profile})
		inv := must.Get(tool.Build(json.RawMessage(fmt.Sprintf(`{"command":%q}`, c.script))))(t)
		got := false
		for _, e := range inv.Effects() {
			got = got || e.Absent
		}
		if got != c.absent {
			t.Errorf("PATH=%s %s: absent is %v, want %v", c.path, c.script, got, c.absent)
		}
	}
}
