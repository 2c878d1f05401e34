package policy

import (
	"strings"
	"testing"

	"github.com/google/shlex"

	"github.com/toold/toold/internal/must"
)

// bounded is the confinement under which defaults.confined holds.
var bounded = Confinement{View: true, Judged: true, Offline: true, Masked: true}

func TestConfinedDefaultsHoldOnlyInASandboxThatBoundsTheCall(t *testing.T) {
	t.Parallel()
	d := asking()
	d.Confined = Allow
	p := rules(t, d,
		Rule{ID: "push", Action: Deny, Run: []string{"git push **"}},
		Rule{ID: "drop", Action: Ask, Run: []string{"git stash drop **"}},
	)
	for _, c := range []struct {
		effect          Effect
		confined, plain Action
	}{
		{run("unheard-of -x"), Allow, Ask},
		{run("python3 -c print()"), Allow, Ask},
		{run("git push origin"), Deny, Deny},
		{run("git stash drop"), Ask, Ask},
		{run("git …"), Deny, Deny},        // it may be push
		{run("docker …"), Ask, Ask},       // no subcommand is known
		{run("docker run …"), Allow, Ask}, // an operand alone
		{run("docker -H x …"), Ask, Ask},  // options come before it
		{run("rm …"), Allow, Ask},
		{run("rm -rf /"), Deny, Deny},
		{write("/usr/local"), Deny, Deny},
		{Effect{Kind: Write, Path: "/usr/local", Canonical: "/usr/local", Possible: true}, Allow, Deny},
		{Effect{Kind: Read, Path: "/etc/shadow", Canonical: "/etc/shadow", Possible: true}, Deny, Deny},
		{run("…"), Ask, Ask},             // no program is known
		{Effect{Kind: Opaque}, Ask, Ask}, // nothing is known
		{Effect{Kind: Env, Name: "PATH"}, Allow, Ask},
		{Effect{Kind: Write, Unknown: true}, Allow, Ask},
		{write("/elsewhere/x"), Ask, Ask},
		{read("/elsewhere/x"), Ask, Ask},
		{Effect{Kind: Net, Host: "example.org"}, Ask, Ask},
		{Effect{Kind: Net, Host: "localhost", Port: 8080}, Allow, Ask},
		{Effect{Kind: Net, Host: "127.0.0.7"}, Allow, Ask},
		{Effect{Kind: Opaque, Code: true}, Allow, Ask},
		{read("/home/u/.ssh/id_rsa"), Deny, Deny},
		{write("/w/.git/config"), Deny, Deny},
	} {
		one := []Effect{c.effect}
		if got := p.Within(bounded).Decide(one); c.effect.Kind == Opaque && got.Action == Allow && !strings.HasPrefix(got.Reason, "It may run what cannot be analysed, because ") {
			t.Errorf("%v: the reason is %q", c.effect, got.Reason)
		}
		if got := p.Within(bounded).Decide(one); got.Action != c.confined {
			t.Errorf("%v: %v by %s in a sandbox, want %v", c.effect, got.Action, got.Rule, c.confined)
		}
		for _, less := range []Confinement{{}, {View: true}, {View: true, Judged: true}, {View: true, Offline: true, Masked: true}, {Judged: true, Offline: true, Masked: true}} {
			if got := p.Within(bounded).Within(less).Decide(one); got.Action != c.plain {
				t.Errorf("%v: %v by %s within %+v, want %v", c.effect, got.Action, got.Rule, less, c.plain)
			}
		}
	}
}

// Only built-in denials are excused in a sandbox: what a person denies stays denied, also where it is only suspected.
func TestAPersonsDenialHoldsForASuspectedWriteInASandbox(t *testing.T) {
	t.Parallel()
	d := asking()
	d.Confined = Allow
	p := compile(t, File{Name: "p.yaml", Defaults: d, Paths: []Rule{{ID: "tools", Action: Deny, Ops: []Kind{Write}, Paths: []string{"/opt/tools/**"}}}})
	e := Effect{Kind: Write, Path: "/opt/tools/x", Canonical: "/opt/tools/x", Possible: true}
	if got := p.Within(bounded).Decide([]Effect{e}); got.Action != Deny || got.Rule != "tools" {
		t.Errorf("%v by %s, want %v by tools", got.Action, got.Rule, Deny)
	}
}

// What a file says of programs is what they get, unless it says something else of confined ones.
func TestAPolicyWithoutConfinedDefaultsMeansTheSameInEverySandbox(t *testing.T) {
	t.Parallel()
	for _, d := range []Defaults{asking(), {}, {Bash: Deny, Read: Allow, Write: Allow, Net: Allow, Unanalysable: Ask, UnknownEnv: Allow}} {
		p := rules(t, d)
		for _, e := range []Effect{run("x"), run("python3 -c x"), read("/w/a"), {Kind: Opaque, Code: true}, {Kind: Env, Name: "PATH"}, {Kind: Write, Unknown: true}, {Kind: Net, Host: "localhost"}} {
			plain, confined := p.Decide([]Effect{e}), p.Within(bounded).Decide([]Effect{e})
			if plain.Action != confined.Action || plain.Rule != confined.Rule {
				t.Errorf("%v: %v by %s, and %v by %s in a sandbox", e, plain.Action, plain.Rule, confined.Action, confined.Rule)
			}
		}
	}
}

// "rm *.tmp" with no such file is no "rm -r /", though a word of it is not known.
func TestAnUnknownWordMakesABuiltInDenialAQuestion(t *testing.T) {
	t.Parallel()
	p := rules(t, Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow, Deny}, Rule{ID: "mine", Action: Deny, Run: []string{"shred **"}})
	decides(t, p, map[string]Action{
		"rm …": Ask, "rm -rf …": Ask, "rm -r /…": Ask, "xargs -0 rm …": Ask, "chmod +x …": Ask, "dd …": Ask,
		"rm -rf /": Deny, "dd of=/dev/sd…": Deny, "rm -rf / …": Deny, "rm … -r /": Deny, "mkfs …": Deny, "rm --no-preserve-root …": Deny,
		"shred …": Deny, "sudo … shred …": Deny,
	})
}

func TestACallThatDoesNothingIsNotSaidToRunSomething(t *testing.T) {
	t.Parallel()
	d := rules(t, asking(), Rule{ID: "all", Action: Allow, Run: []string{"**"}}).Decide([]Effect{run(":")})
	if want := "It runs no program and names no file."; d.Reason != want {
		t.Errorf("got %q, want %q", d.Reason, want)
	}
}

// shellWords is a command that is written with quotes.
func shellWords(t *testing.T, command string) Effect {
	t.Helper()
	text := must.Get(shlex.Split(command))(t)
	e := Effect{Kind: Exec, Dirs: []string{"/w"}}
	for _, w := range text {
		e.Argv = append(e.Argv, Word{Text: w})
	}
	return e
}

func TestARuleMayBeAboutAClassOfCommands(t *testing.T) {
	t.Parallel()
	p := rules(t, Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow, Deny},
		Rule{ID: "lost", Action: Ask, Classes: []string{"destructive"}, Except: []string{"rm -rf scratch"}},
		Rule{ID: "sent", Action: Deny, Classes: []string{"outgoing"}, Reason: "releases are made by people"},
		Rule{ID: "all", Action: Allow, Run: []string{"**"}},
	)
	kept := run("rm -rf src")
	kept.Kept = true
	absent, pushed := run("shred x"), run("docker push x")
	absent.Absent, pushed.Absent = true, true
	followed := run("timeout 9 rm -rf src")
	followed.Follow = true
	for _, c := range []struct {
		effect Effect
		want   Action
		rule   string
	}{
		{run("rm -rf src"), Ask, "lost"},
		{run("shred x"), Ask, "lost"},
		{absent, Allow, "all"},
		{pushed, Allow, "all"},
		{run("rm -fr src"), Ask, "lost"},
		{run("git reset --hard"), Ask, "lost"},
		{run("git -C x clean -dxf"), Ask, "lost"},
		{run("git checkout -- ."), Ask, "lost"},
		{run("git stash drop"), Ask, "lost"},
		{run("git rebase main"), Ask, "lost"},
		{run("npm publish"), Deny, "sent"},
		{run("docker push x"), Deny, "sent"},
		{run("git push"), Deny, "sent"},
		{run("git push --dry-run"), Allow, "all"},
		{run("git reset --soft HEAD~1"), Allow, "all"},
		{run("git stash"), Allow, "all"},
		{run("rm a.txt"), Allow, "all"},
		{run("rm …"), Ask, "builtin:wipe"},
		{run("git reset …"), Allow, "defaults.bash"},
		{run("rm -rf …"), Ask, "lost"},
		{run("rm -rf scratch"), Allow, "all"},
		{followed, Allow, "all"}, // what it starts is an effect of its own
		{kept, Allow, "all"},
	} {
		if d := p.Decide([]Effect{c.effect}); d.Action != c.want || d.Rule != c.rule {
			t.Errorf("%v: %v by %s, want %v by %s", c.effect, d.Action, d.Rule, c.want, c.rule)
		}
	}
	d := p.Decide([]Effect{run("git reset --hard")})
	if want := "It would run `git reset --hard`: it discards changes that are not committed. A person decides."; d.Reason != want {
		t.Errorf("got  %s\nwant %s", d.Reason, want)
	}
	// What a program may start is of its class, as far as a rule about it would find it.
	for _, command := range []string{
		"timeout 9 rm -rf src", "flock a.txt rm -rf src", "npx rm -rf src", "npx --call 'rm -rf src'", "npm exec -- rm -rf src", "setpriv rm -rf src", "taskset 1 rm -rf src", "chrt -o 0 rm -rf src",
		"linux64 rm -rf src", "unshare rm -rf src", "strace -f rm -rf src", "su root -c 'rm -rf src'", "sg root -c 'rm -rf src'", "sudo rm -rf src", "chroot / rm -rf src", "watch -g rm -rf src",
		"parallel rm -rf ::: src", "start-stop-daemon -S -x /bin/rm -- -rf src", "git submodule foreach git reset --hard", "git bisect run rm -rf src", "git difftool -x 'rm -rf src'",
		"split --filter='rm -rf src' f", "uv run rm -rf src", "poetry run rm -rf src", "bundle exec rm -rf src", "busybox rm -rf src", "/lib64/ld-linux-x86-64.so.2 /bin/rm -rf src",
		"script -qc 'rm -rf src' /dev/null", "git rebase -x 'rm -rf src' --continue", "flock a mv src /tmp/x", "npx rimraf src", "git -c alias.x='reset --hard' x", "git -c alias.x='!rm -rf src' x", "git -c core.editor='rm -rf src;' commit",
	} {
		if d := p.Decide([]Effect{shellWords(t, command)}); d.Action != Ask {
			t.Errorf("%s: %v by %s, want ask", command, d.Action, d.Rule)
		}
	}
	for _, command := range []string{"flock a git push", "su -c 'git push'", "git bisect run git push", "git -c alias.x=push x", "git -c core.sshCommand='git push' fetch"} {
		if d := p.Decide([]Effect{shellWords(t, command)}); d.Action != Deny || d.Rule != "sent" {
			t.Errorf("%s: %v by %s, want deny by sent", command, d.Action, d.Rule)
		}
	}
	for class, command := range map[string]string{"destructive": "rm -rf src", "outgoing": "npm publish"} {
		alone := rules(t, Defaults{Bash: Allow}, Rule{ID: "one", Action: Ask, Classes: []string{class}})
		decidesAll(t, alone, Ask, command, "flock a "+command)
		decidesAll(t, alone, Allow, "git status")
	}
	decidesAll(t, p, Allow, []string{"flock a mv src lib", "npx prettier --write src", "nice git status", "flock a rm -rf scratch"}...)
	for _, wrong := range []Rule{{ID: "x", Action: Allow, Classes: []string{"destructive"}}, {ID: "x", Action: Ask, Classes: []string{"everything"}}} {
		if _, err := Compile(place(), File{Name: "p.yaml", Commands: []Rule{wrong}}); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

// With a network by name a program may be unknown, but a loopback address may be the machine's.
func TestANetworkByNameBoundsWhatRunsAndNotTheLoopback(t *testing.T) {
	t.Parallel()
	d := asking()
	d.Confined = Allow
	byName := bounded
	byName.Offline = false
	p := rules(t, d).Within(byName)
	if got := p.Decide([]Effect{run("unheard-of")}); got.Action != Allow {
		t.Errorf("an unknown program: %v by %s", got.Action, got.Rule)
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "example.org"} {
		if got := p.Decide([]Effect{{Kind: Net, Host: host}}); got.Action != Ask {
			t.Errorf("%s: %v by %s", host, got.Action, got.Rule)
		}
	}
}

func TestLeavingTheMachineIsSeen(t *testing.T) {
	t.Parallel()
	for e, want := range map[*Effect]bool{{Kind: Net, Host: "example.org"}: true, {Kind: Write, Path: "/w/a"}: false} {
		if e.Leaves() != want {
			t.Errorf("%+v: %v, want %v", e, !want, want)
		}
	}
	for command, want := range map[string]bool{"git push origin": true, "git status": false} {
		if run(command).Leaves() != want {
			t.Errorf("%s: %v, want %v", command, !want, want)
		}
	}
}
