package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
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
	p := must.Get(Compile(o, l.user, l.further...))(t)
	return p
}

// made returns the files with changes made in them, as a person would make them.
func (l layers) made(t testing.TB, changes ...Change) layers {
	t.Helper()
	l.further = slices.Clone(l.further)
	for _, c := range changes {
		f := &l.user
		for _, other := range []*File{&l.administrator, &l.further[0]} {
			if c.File == other.Name {
				f = other
			}
		}
		*f = f.With(c)
	}
	return l
}

// checkObstacles takes away what keeps an effect from being allowed, and all but one of
// it. It reports whether there was something, and all could be.
func checkObstacles(t testing.TB, l layers, e Effect) bool {
	t.Helper()
	var changes []Change
	for range 8 {
		p := l.made(t, changes...).compile(t)
		found, d := p.Obstacles([]Effect{e}), p.Decide([]Effect{e})
		if (d.Action == Allow) != (len(found) == 0) {
			t.Errorf("%v is %v by %s, and the obstacles are %+v", e, d.Action, d.Rule, found)
		}
		if len(found) == 0 {
			break
		}
		for _, o := range found {
			if o.Why != "" {
				return false
			}
			changes = append(changes, o.Change)
		}
	}
	if d := l.made(t, changes...).compile(t).Decide([]Effect{e}); d.Action != Allow {
		t.Errorf("%+v is %v by %s after %+v", e, d.Action, d.Rule, changes)
	}
	for i := range changes {
		less := slices.Delete(slices.Clone(changes), i, i+1)
		if d := l.made(t, less...).compile(t).Decide([]Effect{e}); d.Action == Allow {
			t.Errorf("%+v: %+v is more than is needed: without part %d it is %v", e, changes, i+1, d.Action)
		}
	}
	return len(changes) > 0
}

func FuzzWithoutItsObstaclesAnEffectIsAllowed(f *testing.F) {
	must.Long(f)
	for seed := range uint64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		checkObstacles(t, randomLayers(r), randomEffect(r))
	})
}

// TestObstaclesOfEffectsThatAreHardToName tries such effects.
func TestObstaclesOfEffectsThatAreHardToName(t *testing.T) {
	must.Long(t)
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
		run("rm" + strings.Repeat(" x", 198)), run("rm" + strings.Repeat(" x", 199)), // the most that a pattern may have
		run("sudo rm -r /"), run("env rm -r x"), run("unknown rm -r x"),
		{Kind: Exec, Argv: []Word{{Text: "x"}, {Text: ""}}},
		{Kind: Exec, Argv: []Word{{Text: "x"}, {Text: "a b; rm -r c"}}},
		{Kind: Exec, Argv: []Word{{Text: "x\u00a0y"}}},
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
		if !checkObstacles(t, l, e) {
			t.Errorf("nothing makes %v allowed", e)
		}
	}
	const analysed, named = "what cannot be analysed is never allowed", "no narrow rule names this command"
	for _, c := range []struct {
		effect Effect
		why    string
	}{
		{run("x…"), analysed},
		{Effect{Kind: Exec}, analysed},
		{Effect{Kind: Opaque}, analysed},
		{Effect{Kind: Env}, "a variable whose name is not known beforehand is never allowed"},
		{run("python3 -c a{b}"), "no rule names code that is in the command"},
		{run("../x"), named},
		{run("x " + strings.Repeat("long ", 200)), named},
		{read("/\xff"), "no narrow rule names it"},
	} {
		found := compile(t, File{Defaults: asking()}).Obstacles([]Effect{c.effect})
		if len(found) != 1 || !strings.HasPrefix(found[0].Why, c.why) {
			t.Errorf("%v: %+v", c.effect, found)
		}
	}
	long := run("rm" + strings.Repeat(" x", 200))
	if found := l.compile(t).Obstacles([]Effect{long}); len(found) != 3 || found[0].Why != "no narrow exception names it" || found[1].Why != found[0].Why {
		t.Errorf("201 words: %+v", found)
	}
}

func TestAProposedRuleHasAFreeIDThatSaysWhatItAllows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		effect Effect
		taken  []string
		want   string
	}{
		{run("go vet ./..."), nil, "allow-go-vet"},
		{run("/opt/Tool"), nil, "allow-tool"},
		{run("x a-b-c-d"), nil, "allow-x-a-b"},
		{run("go vet ./..."), []string{"allow-go-vet"}, "allow-go-vet-2"},
		{run("go vet ./..."), []string{"allow-go-vet", "allow-go-vet-2"}, "allow-go-vet-3"},
		{run("go vet ./..."), []string{"allow-go-vet-2"}, "allow-go-vet"},
		{write("/srv/a.Go"), nil, "allow-write-a-go"},
		{Effect{Kind: Net, Host: "a.test", Port: 443}, nil, "allow-net-a-test"},
		{run(strings.Repeat("x", 40)), nil, "allow-" + strings.Repeat("x", 34)},
	} {
		f := File{Name: "user", Defaults: asking()}
		for _, id := range c.taken {
			f.Commands = append(f.Commands, Rule{ID: id, Action: Allow, Run: []string{"other"}})
		}
		found := compile(t, f).Obstacles([]Effect{c.effect})
		if len(found) != 1 || found[0].Change.Rule.ID != c.want {
			t.Errorf("%v beside %v: %+v, want %s", c.effect, c.taken, found, c.want)
		}
	}
}

func TestAChangeReadsAsInAPolicyFile(t *testing.T) {
	t.Parallel()
	command := Rule{ID: "c", Action: Allow, Run: []string{"./x a"}, RequireFlags: []string{"-n"}, PermitFlags: []string{"-o"}, Dirs: []string{"/w"}}
	for _, row := range []struct {
		change Change
		want   string
	}{
		{Change{File: "user", Section: "commands", Rule: command}, `under commands: {id: c, decision: allow, run: ["./x a"], require_flags: ["-n"], permit_flags: ["-o"], cwd: ["/w"]}`},
		{Change{File: "user", Section: "paths", Rule: Rule{ID: "p", Action: Allow, Ops: []Kind{Read}, Paths: []string{"/srv/a", "/srv/b"}}}, `under paths: {id: p, decision: allow, ops: [read], match: ["/srv/a", "/srv/b"]}`},
		{Change{File: "user", Section: "net", Rule: Rule{ID: "n", Action: Allow, Hosts: []string{"a.test"}, Ports: []int{80}, Schemes: []string{"http"}}}, `under net: {id: n, decision: allow, hosts: ["a.test"], ports: [80], schemes: ["http"]}`},
		{Change{File: "user", Section: "except", At: "r", Texts: []string{"/w/a"}}, `an exception in rule "r": except: ["/w/a"]`},
		{Change{File: "ws", Section: "except", At: "r", Texts: []string{"/w/a"}}, `an exception in rule "r": except: ["/w/a"] in ws`},
		{Change{File: "user", Section: "builtin.disable", Texts: []string{"b"}}, `builtin: {disable: ["b"]}, which takes the whole of a built-in rule away`},
		{Change{File: "user", Section: "env.allow", Texts: []string{"X"}}, `env: {allow: ["X"]}`},
		{Change{File: "user", Section: "unknown_paths.read"}, `unknown_paths: {read: allow}`},
		{Change{File: "ws", Section: "unknown_paths.read"}, `unknown_paths: {read: allow} in ws`},
	} {
		if got := row.change.Text("user"); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
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

// A proposed rule has each word of the command that is known, since it allows all with those words.
func TestAProposedRuleKeepsTheWordsThatAreKnown(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "p.yaml", Defaults: asking()})
	for command, want := range map[string]string{"tool … a a": "tool ** a a", "tool … … a": "tool ** a"} {
		found := p.Obstacles([]Effect{run(command)})
		if len(found) != 1 || !slices.Equal(found[0].Change.Rule.Run, []string{want}) {
			t.Errorf("%s: %+v, want %s", command, found, want)
		}
	}
}
