package policy

import (
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/shell/programs"
)

// loose reports whether the command could be what the pattern means.
func (p *pattern) loose(argv []Word) bool {
	c := programs.Spell(argv)
	return p.means(&c, argv)
}

// mustPattern compiles a pattern that must be right.
func mustPattern(t testing.TB, text string) pattern {
	t.Helper()
	p := must.Get(compilePattern(text))(t)
	return p
}

func TestAllowingRulesMatchStrictly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern  string
		yes, not []string
	}{
		{"npm test", []string{"npm test", "/usr/bin/npm test"}, []string{"npm", "npm test x", "npm test …", "./npm test", "/w/npm test", "npm t", "npm te…", "NPM test"}},
		{"gofmt -l *", []string{"gofmt -l x"}, []string{"gofmt x -l", "gofmt -l", "gofmt -l -w", "gofmt -l x y", "gofmt -l x…"}},
		{"go {build,test} **", []string{"go build", "go test ./...", "go test -v x y"}, []string{"go vet", "go -C x test"}},
		{"a ** z", []string{"a z", "a b z", "a z z"}, []string{"a", "a z b"}},
		{"./scripts/*", []string{"./scripts/x"}, []string{"scripts/x", "./scripts/a/b", "./scripts/../x", "/scripts/x"}},
		{"bash scripts/*", []string{"bash scripts/x.sh"}, []string{"bash scripts/../x", "bash scripts/a/b", "bash -c scripts/x"}},
		{"make -j* all", []string{"make -j4 all", "make -j all"}, []string{"make -k all", "make j4 all"}},
		{"git show <ref>", []string{"git show HEAD", "git show v1.0"}, []string{"git show -p", "git show HEAD:x", "git show a..b", "git show"}},
		{"head -n <int> f", []string{"head -n 5 f"}, []string{"head -n -5 f", "head -n x f", "head -n  f"}},
	} {
		p := mustPattern(t, c.pattern)
		for _, s := range c.yes {
			if _, ok := p.matchesAllow(words(s)); !ok {
				t.Errorf("%q does not match %q", c.pattern, s)
			}
		}
		for _, s := range c.not {
			if _, ok := p.matchesAllow(words(s)); ok {
				t.Errorf("%q matches %q", c.pattern, s)
			}
		}
	}
}

func TestDenyingRulesMatchEverySpelling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern  string
		yes, not []string
	}{
		{
			"rm -r -f **",
			[]string{"rm -rf x", "rm -fr x", "rm -f -R x", "rm --recursive --force x", "rm --rec --fo x", "rm x -vrf", "/bin/rm -rf x", "./rm -rf x", "rm … x", "rm -r… x"},
			[]string{"rm x", "rm -r x", "rm -f x", "rm -- -rf", "rmdir -rf x"},
		},
		{
			"git push **",
			[]string{"git push", "git -C x push", "git -c a=b --no-pager push o", "git --git-dir=x push", "git pu… x", "git … x"},
			[]string{"git log push", "git commit -m push", "git stash push"},
		},
		{"git push --force **", []string{"git push -f", "git push origin main --force", "git push --forc", "git push …"}, []string{"git push", "git push origin"}},
		{"kubectl delete **", []string{"kubectl --context p delete x", "kubectl -n ns delete x"}, []string{"kubectl get delete"}},
		{"npm publish **", []string{"npm --loglevel s publish", "npm publish x"}, []string{"npm run publish"}},
		{"sudo **", []string{"sudo", "sudo x", "/usr/bin/sudo -n x"}, []string{"sudoedit x"}},
		{"git stash {drop,clear} **", []string{"git stash drop", "git stash clear x"}, []string{"git stash list"}},
		{"make deploy", []string{"make deploy", "make -k deploy", "make -f x deploy"}, []string{"make all", "make deploy all"}},
	} {
		p := mustPattern(t, c.pattern)
		for _, s := range c.yes {
			if !p.loose(words(s)) {
				t.Errorf("%q does not match %q", c.pattern, s)
			}
		}
		for _, s := range c.not {
			if p.loose(words(s)) {
				t.Errorf("%q matches %q", c.pattern, s)
			}
		}
	}
}

func TestPatternsAreNoScripts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "  ", "a; b", "a && b", "a | b", "a > b", "a $(b)", "a `b`", "a #b", "# a", "a 'b", `a "b`, "a\nb", "a {b", "a b}", "a x**", "(a)"} {
		if _, err := compilePattern(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestUnsafeFlagsNeedConsent(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(),
		Rule{ID: "go", Action: Allow, Run: []string{"go {build,test} **"}, PermitFlags: []string{"-o", "-o=*"}, Except: []string{"go test -race **"}},
		Rule{ID: "git", Action: Allow, Run: []string{"git fetch **", "git grep -O *"}, ForbidFlags: []string{"--prune"}},
		Rule{ID: "npm", Action: Allow, Run: []string{"npm run *"}},
	)
	decides(t, p, map[string]Action{
		"go test ./...": Allow, "go build -o x .": Allow, "go build -o=x .": Allow, "go test -v -run x": Allow, "npm run build": Allow, "git fetch origin": Allow,
		"go test -exec ./x ./...": Ask, "go test --exec=./x": Ask, "go build -toolexec x": Ask, "go test …": Ask, "go test -race ./...": Ask,
		"go test -o=x -exec=y": Ask, "git fetch --upload-pack=x o": Ask, "git fetch --upl x": Ask, "git fetch --prune": Ask, "git fetch -p…": Ask,
		"git grep -O x": Allow, "npm run -g": Ask, "npm run x…": Ask,
	})
}

func TestArgumentsOfUnknownProgramsAreScanned(t *testing.T) {
	t.Parallel()
	d := asking()
	d.Bash = Allow
	p := rules(t, d, Rule{ID: "privilege", Action: Deny, Run: []string{"sudo **", "rm -r -f **"}})
	decides(t, p, map[string]Action{
		"strace rm -rf x": Deny, "anything sudo id": Deny, "ssh host sudo id": Deny, "docker run x rm -rf y": Deny, "echo sudo": Allow, "grep sudo f": Allow, "git log sudo": Allow,
	})
	e := Effect{Kind: Exec, Argv: []Word{{Text: "ssh"}, {Text: "host"}, {Text: "cd x; sudo id"}}}
	if d := p.Decide([]Effect{e}); d.Action != Deny {
		t.Errorf("text for another shell: %v", d.Action)
	}
}

func TestFoldersOfARule(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(),
		Rule{ID: "test", Action: Allow, Run: []string{"npm test"}, Dirs: []string{"${workspace}/**"}},
		Rule{ID: "script", Action: Allow, Run: []string{"./build.sh"}},
		Rule{ID: "deploy", Action: Deny, Run: []string{"deploy **"}, Dirs: []string{"${workspace}/live"}},
	)
	for _, c := range []struct {
		command string
		dirs    []string
		want    Action
	}{
		{"npm test", []string{"/w/sub"}, Allow},
		{"npm test", []string{"/w", "/x"}, Ask},
		{"npm test", nil, Ask},
		{"./build.sh", []string{"/w"}, Allow},
		{"./build.sh", []string{"/w/sub"}, Ask},
		{"./build.sh", nil, Ask},
		{"deploy x", []string{"/w/live"}, Deny},
		{"deploy x", []string{"/w/test"}, Ask},
		{"deploy x", []string{"/w/test", "/w/live"}, Deny},
		{"deploy x", nil, Deny}, // it may be there
	} {
		e := Effect{Kind: Exec, Argv: words(c.command), Dirs: c.dirs}
		if d := p.Decide([]Effect{e}); d.Action != c.want {
			t.Errorf("%s in %v: %v, want %v", c.command, c.dirs, d.Action, c.want)
		}
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("git {push,pull} **", "git -C x push")
	f.Add("a ** b *", "a … b -c")
	f.Add(" **", "git -C x push")
	f.Fuzz(func(t *testing.T, text, command string) {
		p, err := compilePattern(text)
		if err != nil {
			return
		}
		argv := words(command)
		free, ok := p.matchesAllow(argv)
		for _, i := range free {
			if i < 0 || i >= len(argv) {
				t.Errorf("%q on %q: word %d does not exist", text, command, i)
			}
		}
		// What an allowing rule would let through, a denying rule of the same
		// pattern must stop; but for operands that look like flags after --.
		if ok && len(argv) < 8 && !strings.Contains(command, "--") && !strings.Contains(text, "--") && !p.loose(argv) && plain(text) {
			t.Errorf("%q allows %q and does not deny it", text, command)
		}
	})
}

// plain reports whether a pattern has neither quotes nor numbers nor folders in
// the place of its program.
func plain(text string) bool {
	return !strings.ContainsAny(text, `"'\<*{/-`) || strings.HasSuffix(text, " **") && !strings.ContainsAny(strings.TrimSuffix(text, " **"), `"'\<*{/-`)
}
