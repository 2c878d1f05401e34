package policy

import (
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/shell/programs"
)

func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern  string
		yes, not []string
	}{
		{"/w/**", []string{"/w", "/w/a", "/w/a/b", "/w/.x"}, []string{"/w2", "/wa", "/", "/x/w"}},
		{"/w/*", []string{"/w/a", "/w/.env"}, []string{"/w", "/w/a/b"}},
		{"/w/*.go", []string{"/w/a.go"}, []string{"/w/a/b.go", "/w/a.gox"}},
		{"**/.env", []string{"/.env", "/w/.env", "/w/a/.env"}, []string{"/w/x.env", "/w/.env/x", "/w/.envx"}},
		{"/w/**/.env.*", []string{"/w/.env.a", "/w/b/.env.a"}, []string{"/w/.env"}},
		{"**/.git/hooks/**", []string{"/w/.git/hooks", "/w/.git/hooks/a"}, []string{"/w/.git", "/w/git/hooks"}},
		{"${workspace}/src/**", []string{"/w/src/x"}, []string{"/w/srcx"}},
		{"~/.ssh/**", []string{"/home/u/.ssh", "/home/u/.ssh/id"}, []string{"/home/u/.sshx", "/root/.ssh"}},
		{"/a/[xy]/?", []string{"/a/x/1"}, []string{"/a/z/1", "/a/x/12"}},
		{"/", []string{"/"}, []string{"/a"}},
		{"/**", []string{"/", "/a", "/a/b"}, nil},
	} {
		g := must.Get(compileGlob(c.pattern, place(), false))(t)
		for _, path := range c.yes {
			if !g.match(path) {
				t.Errorf("%s does not match %s", c.pattern, path)
			}
		}
		for _, path := range c.not {
			if g.match(path) {
				t.Errorf("%s matches %s", c.pattern, path)
			}
		}
	}
}

func TestGlobsThatMeanLittleAreRefused(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"", "src/**", "./x", "/w/secrets/", "${workspace}/", "/w/../x", "/w//x", "/w/a**", "/w/[", "${nowhere}/x", "$HOME/x"} {
		if _, err := compileGlob(pattern, place(), false); err == nil {
			t.Errorf("%q is accepted", pattern)
		}
	}
	if _, err := compileGlob("~/x", Options{Workspace: "/w"}, false); err == nil {
		t.Error("a home that is not known is accepted")
	}
}

func TestPathsAreMatchedInBothForms(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Paths: []Rule{
		{ID: "ws", Action: Allow, Paths: []string{"${workspace}/**"}, Except: []string{"${workspace}/private/**"}},
		{ID: "vault", Action: Deny, Paths: []string{"${home}/vault/**", "${workspace}/alias/**"}, Except: []string{"${home}/vault/public"}},
		{ID: "lock", Action: Ask, Ops: []Kind{Write}, Paths: []string{"${workspace}/go.sum"}},
	}})
	link := func(path, canonical string) Effect { return Effect{Kind: Read, Path: path, Canonical: canonical} }
	decidesEach(t, p, []decided{
		{read("/w/a"), Allow},
		{read("/w"), Allow},
		{read("/w-secret/a"), Ask},
		{read("/w/private/a"), Ask},
		{link("/w/x", "/w/private/a"), Ask},
		{link("/w/private/x", "/w/a"), Ask},
		{link("/w/link", "/etc/x"), Ask},
		{link("/x/link", "/w/a"), Allow},
		{link("/w/link", "/home/u/vault/a"), Deny},
		{link("/w/alias/a", "/w/a"), Deny},
		{read("/home/u/vault/public"), Ask},
		{link("/home/u/vault/public", "/home/u/vault/a"), Deny},
		{Effect{Kind: Read, Path: "/w/a"}, Ask},
		{Effect{Kind: Write, Path: "/w/a", Canonical: "/w/a", Unknown: true}, Ask},
		{write("/w/go.sum"), Ask},
		{read("/w/go.sum"), Allow},
	})
}

func TestTreesReachWhatIsBelow(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Paths: []Rule{
		{ID: "ws", Action: Allow, Paths: []string{"${workspace}/**"}, Except: []string{"${workspace}/**/.env"}},
		{ID: "dotenv", Action: Ask, Paths: []string{"${workspace}/**/.env"}},
		{ID: "keys", Action: Deny, Paths: []string{"${workspace}/keys/*.pem"}},
		{ID: "data", Action: Allow, Paths: []string{"/data/**"}, Except: []string{"/data/own/**"}},
	}})
	decidesEach(t, p, []decided{
		{tree(read("/w/src")), Allow},
		{tree(write("/w/src")), Allow},
		{tree(read("/w")), Ask},
		{tree(read("/w/keys")), Ask},
		{tree(write("/w/keys")), Deny},
		{tree(write("/w")), Deny},
		{tree(write("/w/.git")), Deny},
		{tree(write("/w/a/.git/hooks")), Deny},
		{tree(write("/")), Deny},
		{tree(read("/")), Ask},
		{tree(read("/data")), Allow},
		{tree(write("/data")), Ask}, // with what is excepted
		{tree(write("/data/other")), Allow},
	})
}

func TestCaseIsFoldedWhereTheVolumeDoes(t *testing.T) {
	t.Parallel()
	f := File{Defaults: asking(), Paths: []Rule{
		{ID: "ws", Action: Allow, Paths: []string{"/w/**"}}, {ID: "env", Action: Deny, Paths: []string{"/w/.env"}},
	}}
	if d := compile(t, f).Decide([]Effect{read("/w/.ENV")}); d.Action != Allow {
		t.Errorf("sensitive: %v", d.Action)
	}
	f.FoldCase = true
	if d := compile(t, f).Decide([]Effect{read("/W/.ENV")}); d.Action != Deny {
		t.Errorf("insensitive: %v", d.Action)
	}
}

func TestBuiltInRulesProtect(t *testing.T) {
	t.Parallel()
	open := Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow, Deny}
	p := compile(t, File{Defaults: open})
	decidesEach(t, p, []decided{
		{read("/home/u/.ssh/id_ed25519"), Deny},
		{read("/home/u/.aws/credentials"), Deny},
		{read("/home/u/.netrc"), Deny},
		{read("/etc/shadow"), Deny},
		{read("/proc/1/environ"), Deny},
		{read("/proc/self/root/etc/x"), Deny},
		{read("/home/u/.config/toold/policy.yaml"), Deny},
		{write("/home/u/.config/toold/tokens/agent"), Deny},
		{write("/home/u/.bashrc"), Deny},
		{write("/w/.git/hooks/pre-commit"), Deny},
		{write("/w/.git/commondir"), Deny}, // names another folder of configuration
		{write("/w/a/.git"), Deny},         // a file may name another repository
		{write("/w/sub/.git/config"), Deny},
		{write("/etc/hosts"), Deny},
		{write("/dev/sda"), Deny},
		{write("/w/.vscode/tasks.json"), Ask},
		{write("/w/.github/workflows/ci.yml"), Ask},
		{write("/w/sub/AGENTS.md"), Ask},
		{write("/w/AGENTS.override.md"), Ask},
		{write("/w/.agents/skills/x/SKILL.md"), Ask},
		{write("/w/.vimrc"), Ask},
		{write("/w/.gvimrc"), Ask},
		{write("/w/.bash_aliases"), Ask},
		{write("/w/.zlogout"), Ask},
		{write("/w/lefthook.toml"), Ask},
		{write("/w/lefthook-local.json"), Ask},
		{write("/w/.lefthook.toml"), Ask},
		{write("/w/.git/index"), Ask},
		{write("/w/.git/HEAD"), Ask},
		{write("/w/sub/.git/refs/heads/master"), Ask},
		{write("/w/.git/objects"), Ask},
		{write("/w/.git/COMMIT_EDITMSG"), Allow},
		{write("/w/sub/.devcontainer.json"), Ask},
		{write("/w/.circleci/config.yml"), Ask},
		{read("/w/.git/config"), Allow},
		{read("/home/u/.bashrc"), Allow},
		{read("/proc/self/fd"), Allow},
		{tree(read("/proc/self/fd")), Ask},
		{read("/proc/self/fd/3"), Deny},
		{read("/proc/7/task/8/fd/3/x"), Deny},
		{read("/dev/fd"), Allow},
		{read("/dev/fd/3"), Deny},
		{run("mkfs.ext4 /dev/sda1"), Deny},
		{run("shutdown now"), Deny},
		{run("rm -rf /"), Deny},
		{run("rm -r --force x /"), Deny},
		{run("strace rm -rf /"), Deny},
		{run("rm --no-preserve-root -r x"), Deny},
		{run("rm -rf /w/build"), Allow},
	})
	brought := tree(write("/w"))
	brought.Part = programs.PartBrought
	decidesEach(t, p, []decided{{tree(write("/w")), Deny}, {brought, Ask}})
	for _, c := range []struct {
		effect Effect
		rule   string
	}{
		{write("/w/.git"), "builtin:repository"},
		{tree(write("/w")), "builtin:repository"},
		{write("/w/sub/.git"), "builtin:repository"},
		{write("/w/.git/config"), "builtin:git-config"},
		{write("/w/.git/hooks/x"), "builtin:git-config"},
		{write("/w/a/rust-toolchain.toml"), "builtin:build"},
		{write("/w/.git/rebase-merge/git-rebase-todo"), "builtin:git-data"},
		{write("/w/.git/worktrees/x/sequencer/todo"), "builtin:git-data"},
		{write("/w/.cargo/config"), "builtin:run-later"},
		{write("/w/sub/crush.json"), "builtin:run-later"},
		{write("/w/mise/config.toml"), "builtin:run-later"},
	} {
		if d := p.Decide([]Effect{c.effect}); d.Rule != c.rule {
			t.Errorf("%v: %v by %s, want %s", c.effect, d.Action, d.Rule, c.rule)
		}
	}
	p = compile(t, File{Defaults: open, Disable: []string{"builtin:git-config"}})
	if d := p.Decide([]Effect{write("/w/.git/config")}); d.Action != Allow {
		t.Errorf("a rule that is switched off: %v by %s", d.Action, d.Rule)
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("/w/**/.env", "/w/a/.env")
	f.Add("**/{a,b}/*", "/x/a/b")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		choices, err := ExpandBraces(pattern)
		if err != nil {
			return
		}
		for _, choice := range choices {
			g, err := compileGlob(choice, place(), false)
			if err != nil {
				continue
			}
			if g.covers(path) && !g.match(path) {
				t.Errorf("%q covers %q and does not match it", choice, path)
			}
			g.reaches(path)
		}
	})
}
