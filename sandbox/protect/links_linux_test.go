package protect_test

import (
	"slices"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestWhatProtectedNamesLeadToIsListed(t *testing.T) {
	t.Parallel()
	p := newProject(t, repository+`mkdir v1 scripts hooks2 .githooks && echo >v1/envrc; ln -s v1 cur; ln -s cur/envrc .envrc
echo >scripts/pc; ln -s ../../scripts/pc .git/hooks/pre-commit; : >more.cfg; echo "[include] path = no" >deep.cfg
git config include.path ../shared.cfg; printf '[include]\n\tpath = "deep.cfg"\n[includeIf "gitdir:/"]\n\tpath = more.cfg\n' >shared.cfg
git config core.hooksPath .githooks; git init -q n; git -C n config core.hooksPath /etc`)
	want := []string{".git/config", ".git/hooks", ".githooks", "deep.cfg", "more.cfg", "n/.git/config", "n/.git/hooks", "scripts/pc", "shared.cfg", "v1/envrc"}
	must.Match(t, want, p.existing())
}

func TestWhatLeadsProtectedNamesElsewhereIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup, call string
		want        []string
	}{
		"a link in the middle":        {`mkdir v1; echo >v1/envrc; ln -s v1 cur; ln -s cur/envrc .envrc`, `mkdir v2; echo evil >v2/envrc; ln -sfn v2 cur`, []string{"cur"}},
		"what was missing":            {`ln -s cfg/envrc .envrc`, `mkdir cfg; echo evil >cfg/envrc; echo fine >cfg/other`, []string{"cfg/envrc"}},
		"a link to what is":           {`ln -s cfg/envrc .envrc; mkdir v; echo >v/envrc`, `ln -s v cfg`, []string{"cfg"}},
		"a file by another name":      {`ln -s cfg/envrc .envrc; mkdir cfg`, `echo evil >cfg/new; mv cfg/new cfg/envrc`, []string{"cfg/envrc"}},
		"a directory by another name": {`ln -s cfg/envrc .envrc`, `mkdir new; echo evil >new/envrc; mv new cfg`, []string{"cfg/envrc"}},
		"a missing directory":         {repository + `git config core.hooksPath tools/hooks`, `mkdir -p tools/hooks`, []string{"tools/hooks"}},
		"a directory renamed beside":  {`ln -s cfg .vscode; mkdir new`, `mv new other; mv other cfg`, []string{"cfg"}},
		"a link below what was missing": {
			repository + `git config core.hooksPath tools/a/hooks; mkdir -p mine/hooks; echo evil >mine/hooks/pre-commit`,
			`mkdir tools; ln -s ../mine tools/a; mkdir tools/b`,
			[]string{"tools/a"},
		},
		"a link in a directory that comes with it": {
			`ln -s cfg/a/b/envrc .envrc; mkdir -p mine/b; echo evil >mine/b/envrc`,
			`mkdir -p new/other; ln -s ../mine new/a; mv new cfg`,
			[]string{"cfg/a"},
		},
		"a link for a directory on the way": {
			`ln -s cfg/a/envrc .envrc; mkdir -p cfg mine; echo evil >mine/envrc`,
			`mkdir cfg/a; rmdir cfg/a; ln -s ../mine cfg/a`,
			[]string{"cfg/a"},
		},
		"a link for a directory above": {
			`ln -s cfg/a/envrc .envrc; mkdir -p cfg/sub mine/a; echo evil >mine/a/envrc`,
			`mv cfg old; ln -s mine cfg`,
			[]string{"cfg"},
		},
		"links beside the way": {
			repository + `git config core.hooksPath tools/a/hooks; mkdir -p mine/hooks`,
			`mkdir tools; ln -s ../mine tools/aa; ln -s ../mine tools/b; ln -s mine too`, nil,
		},
		"the same again": {`mkdir v1; echo >v1/envrc; ln -s v1 cur; ln -s cur/envrc .envrc`, `touch v1/x; ln -s v1 other; rm other`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, c.setup)
			must.Match(t, c.want, p.call(c.call))
		})
	}
}

func TestWhatAProtectedNameLeadsToCanBeGranted(t *testing.T) {
	t.Parallel()
	p := newProject(t, `mkdir cfg; echo >cfg/envrc; ln -s cfg/envrc .envrc`)
	path := p.dir + "/cfg/envrc"
	if name := p.Name(path); name != path || p.Name(p.dir+"/cfg/other") != "" {
		t.Errorf("%s is protected as %q", path, name)
	}
	c := p.Begin([]string{path})
	defer c.End()
	if slices.Contains(c.Existing(), path) {
		t.Error("it is read-only for the call to which it was granted")
	}
}

func TestAConfigurationThatIncludesItselfIsReadOnce(t *testing.T) {
	t.Parallel()
	p := newProject(t, repository+`git config include.path config; for i in $(seq 2000); do printf '[include]\n\tpath = config\n\tpath = x%d/../config\n' $i; done >>.git/config`)
	if list := p.existing(); len(list) > 100 || !slices.Contains(list, ".git/config") {
		t.Errorf("%d paths are protected", len(list))
	}
}

// What git makes of a new repository comes bit by bit, while others look.
func TestARepositoryThatIsBeingMadeIsNotTakenApart(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	c := p.Begin(nil)
	p.sh("mkdir -p n/.git")
	p.existing()
	p.sh("mkdir n/.git/info n/.git/hooks; echo >n/.git/info/exclude; echo >n/.git/hooks/x.sample")
	must.Match(t, []string(nil), p.taken(c.End()))
}
