package protect_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/rerun"
	"github.com/toold/toold/sandbox/protect"
)

var protected = []string{
	".git", ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/info/attributes",
	".envrc", ".vscode", ".gitmodules", ".npmrc", ".cargo/config.toml", ".hg/hgrc",
}

// project is a workspace with a watcher over it. Commands run in it as a call would
// make them run, but unconfined: what the watcher takes away, nothing else stops.
type project struct {
	t    *testing.T
	dir  string
	quar string
	*protect.Watcher
}

func newProject(t *testing.T, setup string) project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	p := project{t: t, dir: filepath.Join(base, "work"), quar: filepath.Join(base, "state/quarantine")}
	must.Do(t, os.Mkdir(p.dir, 0o700))
	p.sh(setup)
	p.Watcher = must.Get(protect.New(protect.Options{Roots: []string{p.dir}, Names: protected, Quarantine: p.quar}))(t)
	t.Cleanup(p.Close)
	return p
}

// run is a call, and what is closed when it has to end.
type run struct {
	*protect.Call
	violated chan struct{}
}

func (p project) Begin(granted []string) run {
	p.t.Helper()
	return begin(p.t, p.Watcher, granted)
}

func begin(t *testing.T, w *protect.Watcher, granted []string) run {
	t.Helper()
	violated := make(chan struct{})
	c, err := w.Begin(t.Context(), granted, sync.OnceFunc(func() { close(violated) }))
	if err != nil {
		t.Fatal(err)
	}
	return run{c, violated}
}

// sh runs a script in the workspace.
func (p project) sh(script string) {
	p.t.Helper()
	c := exec.CommandContext(p.t.Context(), "bash", "-ec", script)
	c.Dir = p.dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(p.dir), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
	}
	if out, err := c.CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// call runs a script as one call and returns what was taken away, by its path in
// the workspace.
func (p project) call(script string, granted ...string) []string {
	p.t.Helper()
	c := p.Begin(granted)
	p.sh(script)
	return p.taken(c.End())
}

func (p project) taken(incidents []protect.Incident) []string {
	p.t.Helper()
	var paths []string
	for _, i := range incidents {
		if !i.Violation() || i.Gone {
			continue
		}
		if i.Err != nil || i.Kept == "" || i.Why == "" {
			p.t.Errorf("%+v", i)
		}
		if _, err := os.Lstat(i.Path); err == nil {
			p.t.Errorf("%s is still there", i.Path)
		}
		if _, err := os.Lstat(i.Kept); err != nil {
			p.t.Errorf("%s was not kept: %v", i.Path, err)
		}
		origin, err := os.ReadFile(filepath.Join(filepath.Dir(i.Kept), "taken-from"))
		if err != nil || string(origin) != i.Path+"\n" {
			p.t.Errorf("where %s was: %q, %v", i.Path, origin, err)
		}
		paths = append(paths, strings.TrimPrefix(i.Path, p.dir+"/"))
	}
	slices.Sort(paths)
	return paths
}

func (p project) existing() []string {
	c := p.Begin(nil)
	defer c.End()
	list := []string{}
	for _, path := range c.Existing() {
		list = append(list, strings.TrimPrefix(path, p.dir+"/"))
	}
	return list
}

const repository = `git init -q . && echo 1 >one && git add . && git commit -qm one; `

func TestWhatIsThereIsListedAtAnyDepth(t *testing.T) {
	t.Parallel()
	p := newProject(t, repository+`mkdir -p a/b/c/d myhooks .vscode node_modules/x && git init -q a/b/c/d
rm -r .git/hooks && ln -s ../myhooks .git/hooks
echo >a/b/c/d/.envrc; echo >node_modules/x/.envrc; ln -s /etc/passwd .envrc; git worktree add -q wt; git init -q --bare a/bare.git`)
	want := []string{
		".git/config", ".git/info/attributes", ".git/worktrees/wt/commondir", ".vscode", "a/b/c/d/.envrc",
		"a/b/c/d/.git/config", "a/b/c/d/.git/hooks", "a/bare.git/config", "a/bare.git/hooks", "myhooks", "wt/.git",
	}
	p.sh("echo >.git/info/attributes")
	must.Match(t, want, p.existing())
	p.sh(`rm -r .vscode a/b; git clone -q . late; echo >late/.envrc; mv late later`)
	want = []string{
		".git/config", ".git/info/attributes", ".git/worktrees/wt/commondir",
		"a/bare.git/config", "a/bare.git/hooks", "later/.envrc", "later/.git/config", "later/.git/hooks", "myhooks", "wt/.git",
	}
	if diff := cmp.Diff(want, p.existing()); diff != "" {
		t.Error("after changes from outside:", diff)
	}
}

func TestWhatAppearsDuringACallIsTakenAway(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"names in the root":             {`echo x >.envrc; mkdir .vscode; { echo y >.vscode/tasks.json; } 2>/dev/null || :; ln -s one .gitmodules`, []string{".envrc", ".gitmodules", ".vscode"}},
		"a name moved into place":       {`echo x >innocent; mv innocent .envrc; mkdir d; echo >d/tasks.json; mv d .vscode`, []string{".envrc", ".vscode"}},
		"names in a repository":         {`echo x >sub/.envrc`, []string{"sub/.envrc"}},
		"a directory that was replaced": {`mv src old; cp -r old src; rm -r old; echo >src/.envrc; mkdir src/.vscode; echo >src/.vscode/tasks.json`, []string{"src/.envrc", "src/.vscode"}},
		"one made elsewhere":            {`cp -r src new; echo >new/.envrc; rm -r src; mv new src`, []string{"src/.envrc"}},
		"one below one":                 {`mv src old; mkdir -p src/in; echo >src/in/.npmrc`, []string{"src/in/.npmrc"}},
		"one that was made, and again":  {`mkdir own; rmdir own; mkdir own; echo >own/.envrc`, nil},
		"names below are the project's": {`mkdir -p pkg && echo x >pkg/.envrc`, nil},
		"a directory no one may enter":  {`mkdir v; echo y >v/x; chmod 0 v; mv v .vscode`, []string{".vscode"}},
		"a directory no one may write":  {`echo x >sub/.envrc; chmod 555 sub`, []string{"sub/.envrc"}},
		"git's common directory":        {`mkdir e && echo ../e >.git/commondir`, []string{".git/commondir"}},
		"git's attributes":              {`mkdir -p .git/info; echo '* filter=x' >.git/info/attributes`, []string{".git/info/attributes"}},
		"a remote by a file":            {`mkdir -p .git/remotes .git/branches; echo 'URL: ../x' >.git/remotes/origin; echo ../x >.git/branches/origin`, []string{".git/branches/origin", ".git/remotes/origin"}},
		"a remote of a new repository":  {`git init -q n; mkdir -p n/.git/remotes; echo 'URL: ../x' >n/.git/remotes/origin`, []string{"n/.git/remotes/origin"}},
		"configuration of a worktree":   {`printf '[core]\n\tfsmonitor = touch pwned\n' >.git/config.worktree`, []string{".git/config.worktree"}},
		"a hook where hooks are gone":   {`mkdir -p nohooks/.git/hooks; echo x >nohooks/.git/hooks/pre-commit`, []string{"nohooks/.git/hooks/pre-commit"}},
		"a link for hooks":              {`mkdir e; ln -s ../../e nohooks/.git/hooks`, []string{"nohooks/.git/hooks"}},
		"a new repository with a hook":  {`git init -q n/e/w; echo x >n/e/w/.git/hooks/pre-commit`, []string{"n/e/w/.git/hooks/pre-commit"}},
		"a new repository that runs":    {`git init -q n; git -C n config core.fsmonitor 'touch pwned'`, []string{"n/.git/config"}},
		"one that was harmless once":    {`git init -q n; printf '[alias]\n\tst = !x\n' >>n/.git/config`, []string{"n/.git/config"}},
		"one that was moved there":      {`mkdir t; git init -q t/r; git -C t/r config core.pager x; mv t u`, []string{"u/r/.git/config"}},
		"a repository without .git":     {`git init -q --bare b; git -C b config core.fsmonitor x`, []string{"b/config"}},
		"one made by hand":              {`mkdir -p h/objects h/refs/heads h/hooks; echo x >h/hooks/post-checkout; printf '[core]\nfsmonitor=x' >h/config; echo ref: refs/heads/m >h/HEAD`, []string{"h/config", "h/hooks/post-checkout"}},
		"a .git that leads astray":      {`mkdir -p e w; git init -q --bare e/g; echo "gitdir: $PWD/e/g" >w/.git`, []string{"w/.git"}},
		"a .git that is a link":         {`mkdir w; ln -s ../.git w/.git`, []string{"w/.git"}},
		"git init":                      {`git init -q n/e/w && cd n/e/w && echo 1 >1 && git add . && git commit -qm 1`, nil},
		"git clone":                     {`git clone -q sub clone; echo x >clone/.envrc; git -C clone pull -q; git -C clone switch -qc new`, nil},
		"git worktree":                  {`git worktree add -q ../work/wt; cd wt; echo 2 >2; git add -A; git commit -qm 2; git status`, nil},
		"git init --bare":               {`git init -q --bare b.git; git push -q ./b.git HEAD:main`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, repository+`mkdir -p src/in; echo >src/in/a; for r in sub nohooks; do git init -q $r; git -C $r commit -q --allow-empty -m $r; done; rm -r nohooks/.git/hooks`)
			must.Match(t, test.want, p.call(test.script))
			if again := p.call("chmod -R u+rwX ."); again != nil {
				t.Errorf("the next call reports %v", again)
			}
		})
	}
}

func TestSubmodulesWork(t *testing.T) {
	t.Parallel()
	p := newProject(t, `git init -q lib && git -C lib commit -q --allow-empty -m lib; git init -q app; cd app
git submodule -q add ../lib mod && git commit -qm mod; git submodule -q deinit -f mod; git submodule -q init; rm -r .git/modules/mod`)
	if got := p.call("cd app; git submodule -q update; cd mod; echo 1 >1; git add -A; git commit -qm 1; cd ..; git commit -qam mod"); got != nil {
		t.Errorf("%v was taken from a submodule", got)
	}
	want := []string{
		"app/.git/config", "app/.git/hooks", "app/.git/modules/mod/config", "app/.git/modules/mod/hooks", "app/.gitmodules", "app/mod/.git",
		"lib/.git/config", "lib/.git/hooks",
	}
	must.Match(t, want, p.existing())
	got := p.call("echo x >app/.git/modules/mod/hooks/post-checkout")
	must.Match(t, []string{"app/.git/modules/mod/hooks/post-checkout"}, got)
}

// A call on a file that somebody else changes must not cost that person the file.
func TestWhatPeopleDoStays(t *testing.T) {
	t.Parallel()
	p := newProject(t, repository+"echo mine >.envrc; mkdir d")
	if got := p.existing(); !slices.Contains(got, ".envrc") {
		t.Errorf("listed: %v", got)
	}
	p.sh("echo newer >.envrc; mkdir .vscode") // between calls
	c := p.Begin(nil)
	p.sh(`echo newest >x && mv x .envrc; git config core.pager less`) // a call could not: they are read-only for it
	if got := p.taken(c.End()); got != nil {
		t.Errorf("%v was taken from its owner", got)
	}
	if got := p.existing(); !slices.Contains(got, ".vscode") {
		t.Errorf("listed: %v", got)
	}
}

func TestAGrantIsForOneCall(t *testing.T) {
	t.Parallel()
	p := newProject(t, repository+"mkdir .vscode")
	file := filepath.Join(p.dir, ".vscode/settings.json")
	beside := p.Begin(nil)
	c := p.Begin([]string{file, p.dir + "/.npmrc"})
	if slices.Contains(c.Existing(), filepath.Join(p.dir, ".vscode")) {
		t.Error("what was granted is protected")
	}
	p.sh("echo 1 >.vscode/settings.json; echo 3 >.npmrc")
	if got := p.taken(c.End()); got != nil {
		t.Errorf("%v was taken from its owner", got)
	}
	p.sh("echo 2 >.envrc")
	must.Match(t, []string{".envrc"}, p.taken(beside.End()))
	if got := p.existing(); !slices.Contains(got, ".vscode") || !slices.Contains(got, ".npmrc") {
		t.Errorf("for the next call: %v", got)
	}
}

func TestEveryCallThatRanIsTold(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	before, one, two := p.Begin(nil), p.Begin(nil), p.Begin(nil)
	before.End()
	p.sh("echo x >.envrc")
	<-one.violated
	<-two.violated
	found := one.End()
	if len(found) != 1 || !found[0].Later || found[0].Path != p.dir+"/.envrc" {
		t.Errorf("while the other runs: %+v", found)
	}
	must.Match(t, []string{".envrc"}, p.taken(two.End()))
}

func TestWhatIsMadeOverAndOverIsNotAllKept(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	c := p.Begin(nil)
	p.sh(`git init -q r; mkdir -p r/.git/hooks; for i in {1..300}; do echo x >r/.git/hooks/$i; done`)
	got := c.End()
	if len(got) != 200 {
		t.Errorf("%d were reported", len(got))
	}
	left, err := filepath.Glob(p.dir + "/r/.git/hooks/[0-9]*")
	if err != nil || len(left) != 0 {
		t.Errorf("%d are left, %v", len(left), err)
	}
	cells, err := os.ReadDir(p.quar)
	if err != nil || len(cells) != 200 {
		t.Errorf("%d are kept, %v", len(cells), err)
	}
}

func TestThePathAloneTellsWhatIsProtected(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	for path, want := range map[string]string{
		".envrc": ".envrc", "a/b/.envrc": ".envrc", ".vscode/x/y": ".vscode", ".git": ".git", "a/.git": ".git",
		".git/hooks/pre-commit": ".git/hooks", "a/.git/config": ".git/config", ".git/HEAD": "", ".git/info/exclude": "",
		".git/info/attributes": ".git/info/attributes", ".git/modules/a/b/hooks/x": ".git/hooks", ".git/modules/a/config": ".git/config",
		".git/worktrees/x/commondir": ".git/commondir", ".git/worktrees/x/HEAD": "", "envrc": "", "x.envrc": "", "vscode/.x": "", "config": "",
	} {
		if got := p.Name(filepath.Join(p.dir, path)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := p.Name(filepath.Dir(p.dir) + "/.envrc"); got != "" {
		t.Errorf("outside of the workspace: %q", got)
	}
}

// The follower, the pool of waiting shells in the daemon, hears of changes by people.
func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	heard := make(chan []string, 16)
	p.Follow(func(existing []string) { heard <- existing })
	p.sh("echo >.envrc")
	want := []string{filepath.Join(p.dir, ".envrc")}
	for {
		select {
		case got := <-heard:
			if slices.Equal(got, want) {
				return
			}
		case <-t.Context().Done():
			t.Fatal("nothing reports .envrc")
		}
	}
}

func TestWhatIsProtectedStaysSoInADirectoryThatACallCloses(t *testing.T) {
	t.Parallel()
	if rerun.AsUser(t) {
		return
	}
	p := newProject(t, repository+`mkdir -p a/b c d/hooks; echo x >a/b/.envrc; printf '[core]\nhooksPath = d/hooks\n' >c/cfg
		git config include.path ../c/cfg; git init -q a/r`)
	open := "find . -type d ! -perm -u+rwx -exec chmod 700 {} ';' ; "
	want := p.existing()
	for _, closed := range []string{"a", "a/b", "c", "d", ". a a/b", "a/r", "a/r/.git"} {
		p.call("chmod 700 .; " + open + "git config user.name $RANDOM; chmod 0 $(printf '%s\n' " + closed + "| tac)") // so that all are looked for again
		if d := cmp.Diff(want, p.existing()); d != "" {
			t.Errorf("%s is closed: %s", closed, d)
		}
	}
}
