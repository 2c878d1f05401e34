package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// layers are the files of a policy, in which a change can be made.
type layers struct {
	user, administrator File
	managed             bool // there is an administrator
	further             []File
}

func (l layers) compile(t testing.TB) *Policy {
	t.Helper()
	o := place()
	if l.managed {
		o.Administrator = &l.administrator
	}
	p, err := Compile(o, l.user, l.further...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// made returns the files with edits made in them, as a person would make them.
func (l layers) made(t testing.TB, edits ...edit) layers {
	t.Helper()
	l.further = slices.Clone(l.further)
	for _, ed := range edits {
		f := &l.user
		for _, other := range []*File{&l.administrator, &l.further[0]} {
			if ed.file == other.Name {
				f = other
			}
		}
		switch ed.key {
		case "commands":
			f.Commands = append(slices.Clip(f.Commands), ed.rule)
		case "paths":
			f.Paths = append(slices.Clip(f.Paths), ed.rule)
		case "net":
			f.Net = append(slices.Clip(f.Net), ed.rule)
		case "except":
			for _, list := range []*[]Rule{&f.Commands, &f.Paths, &f.Net} {
				*list = slices.Clone(*list)
				for i, r := range *list {
					if r.ID == ed.at.ID {
						(*list)[i].Except = append(slices.Clip(r.Except), ed.texts...)
					}
				}
			}
		case "permit_flags":
			f.Commands = slices.Clone(f.Commands)
			for i, r := range f.Commands {
				if r.ID == ed.at.ID {
					f.Commands[i].PermitFlags = append(slices.Clip(r.PermitFlags), ed.texts...)
				}
			}
		case "builtin.disable":
			f.Disable = append(slices.Clip(f.Disable), ed.texts...)
		case "env.allow":
			f.Env = append(slices.Clip(f.Env), ed.texts...)
		case "mode":
			f.Headless = false
		default:
			*f.Defaults.named(ed.key) = ed.value
		}
	}
	return l
}

// checkChange makes the change that a decision names in the files, and without
// one of its parts, and decides the effect again. It reports whether there is one.
func checkChange(t testing.TB, l layers, e Effect) bool {
	t.Helper()
	p := l.compile(t)
	d := p.Decide([]Effect{e})
	if (d.Action == Allow) != (d.Change == "") {
		t.Errorf("%v is %v by %s, and the change is %q", e, d.Action, d.Rule, d.Change)
	}
	edits, becomes, ok := p.change(e, p.judge(e))
	if !ok || d.Action == Allow {
		return false
	}
	if after := l.made(t, edits...).compile(t).Decide([]Effect{e}); after.Action != becomes || becomes <= d.Action {
		t.Errorf("%+v is %v by %s; after %q it is %v by %s, not %v", e, d.Action, d.Rule, d.Change, after.Action, after.Rule, becomes)
	}
	for i := range edits {
		less := slices.Delete(slices.Clone(edits), i, i+1)
		if after := l.made(t, less...).compile(t).Decide([]Effect{e}); after.Action > d.Action {
			t.Errorf("%+v is %v by %s; %q is more than is needed: without part %d it is %v", e, d.Action, d.Rule, d.Change, i+1, after.Action)
		}
	}
	return true
}

func FuzzTheSmallestChangeComesTrue(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		checkChange(t, randomLayers(r), randomEffect(r))
	})
}

// TestTheChangeThatADecisionNamesComesTrue tries effects that are hard to name.
func TestTheChangeThatADecisionNamesComesTrue(t *testing.T) {
	t.Parallel()
	effects := []Effect{
		run("go build -o x -ldflags=a/b"), run("go build -o=a,b {x} *"), run("make all CC=x -C d"), run("go build -toolexec=x"),
		tree(read("/w/a")), tree(write("/srv/a")), read("/srv/a[b]*{c}"), read("/srv/{a,b}"), read(`/srv/a\b`), write("/srv/a b"), read("/"), tree(read("/")), tree(read("/srv/**")),
		read("/srv/${home}"), read("/srv/x\ny"), tree(read("/w")), tree(write("/w")), write("/w/.git/config"),
		{Kind: Read, Path: "/srv/x"},
		{Kind: Read, Path: "/srv/x", Unknown: true},
		{Kind: Read, Path: "/w/l", Canonical: "/srv/l"},
		{Kind: Net, Host: "a.test", Port: 8080, Scheme: "ssh"},
		{Kind: Net},
		{Kind: Env, Name: "LD_PRELOAD"},
		{Kind: Env, Name: "X"},
		run("find . -exec"), run("git -c a=b push"), run("python3 x.py"), run("tar xf a --to-command=x"), run("npx -y x"), run("git log {a} *x"),
		run("./x a"), run("/usr/bin/x"), run("/opt/x"), run("x é"), run("x !"), run("x ~"), run("x ?"), run("x [a]"), run("x a=b"), run("A=b"), run("x ; | & < > ( ) $ ` # ' \" \\"),
		run("sudo rm -r /"), run("env rm -r x"), run("unknown rm -r x"),
		{Kind: Exec, Argv: []Word{{Text: "x"}, {Text: ""}}},
		{Kind: Exec, Argv: []Word{{Text: "x"}, {Text: "a b; rm -r c"}}},
		{Kind: Exec, Argv: []Word{{Text: "x\u00a0y"}}},
		{Kind: Opaque, Why: "it is computed"},
	}
	for _, c := range randomCommands {
		if e := run(c); !e.Argv[0].Dynamic {
			effects = append(effects, e)
		}
	}
	denials := []Rule{{ID: "builds", Action: Allow, Run: []string{"go build **", "make all **"}}, {ID: "no-rm", Action: Deny, Run: []string{"rm **"}}, {ID: "no-push", Action: Ask, Run: []string{"git push **"}}}
	secrets := []Rule{{ID: "no-a", Action: Deny, Paths: []string{"/w/a", "**/.env", "/srv/**"}}}
	l := layers{
		user:          File{Name: "user", Defaults: Defaults{}, Commands: denials},
		administrator: File{Name: "admin", Defaults: asking(), Paths: secrets},
		managed:       true,
		further:       []File{{Name: "ws", Defaults: asking(), Headless: true, Commands: []Rule{{ID: "ws", Action: Deny, Run: []string{"rm **", "x **"}}}}},
	}
	for _, e := range effects {
		if !checkChange(t, l, e) {
			t.Errorf("no change is named for %v", e)
		}
	}
	for _, e := range []Effect{run("x…"), {Kind: Env}, {Kind: Opaque}, run("python3 -c a{b}"), run("../x"), run("x " + strings.Repeat("long ", 200)), {Kind: Exec}, read("/\xff")} {
		d := compile(t, File{Defaults: asking()}).Decide([]Effect{e})
		if !strings.HasPrefix(d.Change, "none in the policy: ") {
			t.Errorf("%v is %v, and the change is %q", e, d.Action, d.Change)
		}
	}
}

func TestAChangeIsReadable(t *testing.T) {
	t.Parallel()
	o := place()
	o.Administrator = &File{Name: "/etc/toold/policy.yaml", Defaults: Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow}, Commands: []Rule{
		{ID: "no-deploy", Action: Deny, Line: 3, Run: []string{"deploy **"}},
	}}
	p, err := Compile(o, File{Name: "p.yaml", Defaults: asking(), Commands: []Rule{
		{ID: "push", Action: Deny, Run: []string{"git push **"}, Line: 7},
		{ID: "allow-go-test", Action: Allow, Run: []string{"go test"}},
		{ID: "builds", Action: Allow, Run: []string{"go {build,env} **", "pytest **"}, Line: 5},
		{ID: "pull", Action: Ask, Run: []string{"git {push,pull} **"}, Line: 9},
	}, Net: []Rule{{ID: "meta", Action: Deny, Hosts: []string{"*.test"}}}}, File{Name: ".toold/policy.yaml", Headless: true, Defaults: asking()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		effect Effect
		want   string
	}{
		{run("go test -o x"), `under commands: {id: allow-go-test-2, decision: allow, run: ["go test -o x"]}; then it is allowed`},
		{run("go env -w x"), `under commands: {id: allow-go-env, decision: allow, run: ["go env -w x"]}; then it is allowed`},
		{run("pytest -o x"), `under commands: {id: allow-pytest-o, decision: allow, run: ["pytest -o x"]}; then it is allowed`},
		{run("go build -modfile x ."), `under commands: {id: allow-go-build, decision: allow, run: ["go build -modfile x ."]}; then it is allowed`},
		{run("go build -ldflags=-s -coverprofile=x -o x ."), `permit_flags: ["-ldflags=-s", "-coverprofile=*", "-o"] in rule "builds" (p.yaml:5); then it is allowed`},
		{run("go build -toolexec ./x ."), `under commands: {id: allow-go-build, decision: allow, run: ["go build -toolexec ./x ."]}; then it is allowed`},
		{run("git pull 'a b'"), `an exception in this rule: except: ["git pull \"'a\" \"b'\""]; and under commands: {id: allow-git-pull, decision: allow, run: ["git pull \"'a\" \"b'\""]}; then it is allowed`},
		{run("git push"), `an exception in this rule: except: ["git push"]; and an exception in rule "pull" (p.yaml:9): except: ["git push"]; and under commands: {id: allow-git-push, decision: allow, run: ["git push"]}; then it is allowed`},
		{run("deploy"), `an exception in this rule: except: ["deploy"] in /etc/toold/policy.yaml, which only the administrator can change; and under commands: {id: allow-deploy, decision: allow, run: ["deploy"]}; then it is allowed`},
		{write("/w/.git/config"), `builtin: {disable: ["builtin:git-config"]}, which takes the whole of a built-in rule away; and under paths: {id: allow-write-config, decision: allow, ops: [write], match: ["/w/.git/config"]}; then it is allowed`},
		{Effect{Kind: Opaque, Why: "x"}, `mode: interactive in .toold/policy.yaml; then a person is asked`},
		{Effect{Kind: Net, Host: "a.test", Port: 443}, `an exception in this rule: except: ["a.test"]; and under net: {id: allow-net-a-test, decision: allow, hosts: ["a.test"], ports: [443]}; then it is allowed`},
		{Effect{Kind: Net}, `defaults: {net: allow}; and defaults: {net: allow} in .toold/policy.yaml; then it is allowed`},
	} {
		if d := p.Decide([]Effect{c.effect}); d.Change != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.effect, d.Change, c.want)
		}
	}
}

// randomLayers is a policy of several files, each of which may deny.
func randomLayers(r *rand.Rand) layers {
	l := layers{user: randomFile(r), managed: r.IntN(3) == 0, further: []File{randomFile(r)}}
	l.administrator = randomFile(r)
	l.user.Name, l.administrator.Name, l.further[0].Name = "user", "admin", "ws"
	for _, f := range []*File{&l.user, &l.administrator, &l.further[0]} {
		f.Headless = r.IntN(4) == 0
		for n, list := range [][]Rule{f.Commands, f.Paths, f.Net} {
			for i := range list {
				list[i].ID = fmt.Sprint(f.Name, n, i)
			}
		}
	}
	return l
}
