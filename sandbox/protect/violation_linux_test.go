package protect_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/protect"
)

// ended reports whether a call has to be ended.
func ended(c run) bool {
	select {
	case <-c.violated:
		return true
	default:
		return false
	}
}

func TestAProtectedNameEndsTheCallAtOnce(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in the root":                 `echo x >.envrc`,
		"in a directory":              `echo x >old/pkg/.envrc`,
		"in a repository":             `mkdir r/.vscode`,
		"a hook":                      `mkdir -p r/.git/hooks; echo x >r/.git/hooks/pre-commit`,
		"a link to a directory":       `mkdir c; echo x >c/config.toml; ln -s c .cargo`,
		"a file in a directory":       `mkdir -p old/.cargo; echo x >old/.cargo/config.toml`,
		"a directory with a file":     `mkdir c; echo x >c/config.toml; mv c .cargo`,
		"a directory of the project":  `mv old/pkg old/.vscode`,
		"a directory renamed twice":   `mv old/pkg old/x; mv old/x old/.vscode`,
		"a configuration of git":      `printf '[core]\n\tfsmonitor = x\n' >w; mv w r/.git/config.worktree`,
		"a configuration of hg":       `mkdir -p old/.hg; printf '[hooks]\nupdate = x\n' >w; mv w old/.hg/hgrc`,
		"in a directory that moved":   `mkdir t; mv old/pkg t/pkg; echo x >t/pkg/.envrc`,
		"through dependencies":        `mv old/pkg node_modules/pkg; echo x >node_modules/pkg/.envrc; mv node_modules/pkg old/pkg`,
		"a link below .git":           `mkdir -p r/.git/logs/refs; ln -s ../../../../x r/.git/logs/refs/y`,
		"a FIFO below .git":           `mkfifo r/.git/refs/heads/x`,
		"a FIFO deep below .git":      `mkdir -p r/.git/refs/heads/a/b; mkfifo r/.git/refs/heads/a/b/c`,
		"a socket below .git":         `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("r/.git/s")'`,
		"what another call then made": `mkdir -p old/n; echo x >old/.envrc`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(script, "python3") {
				if _, err := exec.LookPath("python3"); err != nil {
					t.Skip("python3 is not installed")
				}
			}
			p := newProject(t, `git init -q r; rm -r r/.git/hooks; mkdir -p old/pkg node_modules`)
			c := p.Begin(nil)
			p.sh(script)
			<-c.violated
			if got := p.taken(c.End()); len(got) == 0 {
				t.Error("nothing was removed")
			}
		})
	}
}

func TestACallGoesOnInWhatItMade(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script    string
		want, own []string
	}{
		"a project": {`mkdir n; echo x >n/.envrc; mkdir n/.vscode n/.cargo; echo >n/.cargo/config.toml`, nil, []string{"n/.cargo/config.toml", "n/.envrc", "n/.vscode"}},
		"a clone": {
			`git init -q s; mkdir s/.vscode; echo {} >s/.vscode/a; git -C s add .; git -C s commit -qm 1; git clone -q s c; git -C c status`,
			nil,
			[]string{"c/.vscode", "s/.vscode"},
		},
		"a link in .git":                 {`git init -q c; mkdir -p c/.git/logs; ln -s ../../../old/file c/.git/logs/HEAD`, []string{"c/.git/logs/HEAD"}, nil},
		"hooks of a clone":               {`git init -q c; mkdir -p c/.git/hooks; echo x >c/.git/hooks/pre-push`, []string{"c/.git/hooks/pre-push"}, nil},
		"another tree":                   {`git init -q c; git -C c config core.worktree /`, []string{"c/.git/config"}, nil},
		"a tree of a module":             {`git init -q c; mkdir -p c/.git/modules/m; printf '[core]\nworktree = ../../../../old\n' >c/.git/modules/m/config`, []string{"c/.git/modules/m/config"}, nil},
		"a FIFO":                         {`git init -q c; mkfifo c/.git/refs/x c/.git/objects/info/x`, []string{"c/.git/objects/info/x", "c/.git/refs/x"}, nil},
		"a configuration of hg":          {`mkdir -p c/.hg; printf '[hooks]\nupdate = x\n' >c/.hg/hgrc`, []string{"c/.hg/hgrc"}, nil},
		"hg clone":                       {`mkdir -p c/.hg; printf '[paths]\ndefault = ../s\n' >c/.hg/hgrc`, nil, nil},
		"dependencies":                   {`mkdir -p node_modules/x; echo >node_modules/x/.npmrc; echo >node_modules/.npmrc`, nil, nil},
		"directories that are closed":    {`git init -q h/r; echo x >h/r/.git/hooks/pre-push; chmod 0 h/r/.git/hooks h/r/.git h/r h`, []string{"h/r/.git/hooks/pre-push"}, nil},
		"a configuration that is closed": {`git init -q h; git -C h config core.pager x; chmod 0 h/.git`, []string{"h/.git/config"}, nil},
		"below one that was there":       {`git init -q old/r; echo x >old/r/.git/hooks/pre-push; chmod 0 old/r/.git old`, []string{"old/r/.git/hooks/pre-push"}, nil},
		"a rebase that ends":             {rebased + `git rebase -q --exec true HEAD~2`, nil, nil},
		"a rebase by a strategy of its own": {
			stopped + `git rebase -q -s ours main~2 || :; git rebase -q main || :; mkdir git-merge-x; echo x/evil >.git/rebase-merge/strategy`,
			[]string{"s/.git/rebase-merge/strategy"},
			nil,
		},
		"a rebase by a strategy of git's": {stopped + `git rebase -q -s recursive main || test -e .git/rebase-merge/strategy`, nil, nil},
		"picks by a strategy of its own": {
			stopped + `git cherry-pick main~1 main || :; git config -f .git/sequencer/opts options.strategy x/evil`, []string{"s/.git/sequencer/opts"}, nil,
		},
		"picks by a strategy of git's": {stopped + `git cherry-pick -s --strategy=recursive main~1 main || test -e .git/sequencer/opts`, nil, nil},
		"a rebase that does not":       {rebased + `git rebase -q --exec false HEAD~2 || :`, []string{"s/.git/rebase-merge/git-rebase-todo"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, `mkdir -p old node_modules`)
			c := p.Begin(nil)
			p.sh(test.script)
			found := c.End()
			if ended(c) {
				t.Error("the call was ended")
			}
			must.Match(t, test.want, p.taken(found))
			var own []string
			for _, i := range found {
				if i.Own {
					own = append(own, strings.TrimPrefix(i.Path, p.dir+"/"))
				}
			}
			slices.Sort(own)
			must.Match(t, test.own, own)
			existing := p.existing()
			for _, path := range test.own {
				if !slices.Contains(existing, path) {
					t.Errorf("the next call may change %s: %v", path, existing)
				}
			}
			p.sh("chmod -R u+rwX .")
		})
	}
}

const rebased = `git init -q s; cd s; for i in 1 2 3; do echo $i >f; git add f; git commit -qm $i; done; `

// stopped has two branches that conflict in f.
const stopped = rebased + `git branch -m main; git checkout -qb side HEAD~2; echo x >f; git commit -qam x; `

// A repository is protected from the next call on, also while the one that was there when
// it was made still runs.
func TestWhatACallMadeIsProtectedFromTheNextCallOn(t *testing.T) {
	t.Parallel()
	for _, beside := range []bool{false, true} {
		p := newProject(t, "")
		var other run
		if beside {
			other = p.Begin(nil)
		}
		p.call(`git init -q n; echo >n/.envrc`)
		c := p.Begin(nil)
		for _, path := range []string{"n/.git/config", "n/.git/hooks", "n/.envrc"} {
			if !slices.Contains(c.Existing(), filepath.Join(p.dir, path)) {
				t.Errorf("beside another call %t: %s is not protected", beside, path)
			}
		}
		if !beside {
			p.sh(`echo x >n/.npmrc`)
			<-c.violated
		}
		p.taken(c.End())
		other.End()
	}
}

// What a person has begun stays: a call can neither change nor end it.
func TestTheListOfAPersonsRebaseIsReadOnly(t *testing.T) {
	t.Parallel()
	p := newProject(t, rebased+`git rebase -q --exec false HEAD~2 || :`)
	c := p.Begin(nil)
	path := p.dir + "/s/.git/rebase-merge/git-rebase-todo"
	if !slices.Contains(c.Existing(), path) {
		t.Errorf("%v", c.Existing())
	}
	if got := p.taken(c.End()); got != nil {
		t.Errorf("%v was removed", got)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestReportEndsNothing(t *testing.T) {
	t.Parallel()
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	w := must.Get(protect.New(protect.Options{Roots: []string{base}, Names: protected, Quarantine: base + "-q", Report: true}))(t)
	defer w.Close()
	c := begin(t, w, nil)
	if err := os.WriteFile(base+"/.envrc", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := c.End()
	if ended(c) || len(found) != 1 || found[0].Kept != "" || found[0].Err != nil {
		t.Errorf("%+v", found)
	}
	if _, err := os.Stat(base + "/.envrc"); err != nil {
		t.Error(err)
	}
}

// More than is reported or kept is removed all the same.
func TestWhatIsTooMuchIsRemovedAsWell(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	c := p.Begin(nil)
	p.sh(`for r in a b c; do git init -q $r; mkdir -p $r/.git/hooks; (cd $r/.git/hooks; for i in {1..1500}; do : >$i; done); done`)
	<-c.violated
	if got := len(p.taken(c.End()[:200])); got != 200 {
		t.Errorf("%d were reported", got)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for _, unseen := p.Unwatched(); unseen; _, unseen = p.Unwatched() {
		<-tick.C
	}
	left, err := filepath.Glob(p.dir + "/*/.git/hooks/[0-9]*")
	if err != nil || len(left) != 0 {
		t.Errorf("%d are left, %v", len(left), err)
	}
}
