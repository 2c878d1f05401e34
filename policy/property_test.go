package policy

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// FuzzRulesOnlyMoveADecisionOneWay adds a rule to a random policy:
//
//   - a denying rule, or another effect, never makes a decision more permissive;
//   - an asking rule never makes one allow. It may make one of deny: what a default
//     denies, a rule that names it may ask for. That is why it is not said to
//     never loosen;
//   - an allowing rule never makes one stricter.
//
// The order of the rules has no meaning for the action.
func FuzzRulesOnlyMoveADecisionOneWay(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 3))
		base := randomFile(r)
		effects := []Effect{randomEffect(r), randomEffect(r)}[:1+r.IntN(2)]
		before := compile(t, base).Decide(effects).Action
		with := func(a Action) Action {
			more := base
			more.Commands = append([]Rule(nil), base.Commands...)
			more.Paths = append([]Rule(nil), base.Paths...)
			addRandomRule(r, &more, a)
			return compile(t, more).Decide(effects).Action
		}
		if after := with(Deny); after > before {
			t.Errorf("a denying rule made %v of %v for %v", after, before, effects)
		}
		if after := with(Ask); after == Allow && before != Allow {
			t.Errorf("an asking rule made %v of %v for %v", after, before, effects)
		}
		if after := with(Allow); after < before {
			t.Errorf("an allowing rule made %v of %v for %v", after, before, effects)
		}
		if after := compile(t, base).Decide(append(effects, randomEffect(r))).Action; after > before {
			t.Errorf("an effect made %v of %v for %v", after, before, effects)
		}
		shuffled := base
		shuffled.Commands, shuffled.Paths = shuffle(r, base.Commands), shuffle(r, base.Paths)
		if after := compile(t, shuffled).Decide(effects).Action; after != before {
			t.Errorf("another order made %v of %v for %v", after, before, effects)
		}
	})
}

func randomFile(r *rand.Rand) File {
	f := File{Defaults: randomDefaults(r), Presets: []string{presetReadOnly, presetWorkspace}[:r.IntN(3)]}
	for range r.IntN(5) {
		addRandomRule(r, &f, Action(r.IntN(3)))
	}
	return f
}

func shuffle(r *rand.Rand, rules []Rule) []Rule {
	out := append([]Rule(nil), rules...)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

var (
	changeRun  = regexp.MustCompile(`^a rule in commands: \{decision: allow, run: \[(".*")\]\}$`)
	changePath = regexp.MustCompile(`^a rule in paths: \{decision: allow, ops: \[(read|write)\], match: \[(".*")\]\}$`)
	changeHost = regexp.MustCompile(`^a rule in net: \{decision: allow, hosts: \[(".*")\]\}$`)
	changeEnv  = regexp.MustCompile(`^env: \{allow: \[(.*)\]\}$`)
)

// TestTheChangeThatADecisionNamesAllows makes the change that a decision names, and
// decides the effect that it was about again.
func TestTheChangeThatADecisionNamesAllows(t *testing.T) {
	t.Parallel()
	effects := []Effect{
		tree(read("/w/a")), tree(write("/srv/a")), read("/srv/a[b]*{c}"), write("/srv/a b"), read("/"), tree(read("/")), tree(read("/srv/**")),
		{Kind: Read, Path: "/srv/x"},
		{Kind: Read, Path: "/srv/x", Unknown: true},
		{Kind: Read, Path: "/w/l", Canonical: "/srv/l"},
		{Kind: Net, Host: "a.test", Port: 8080, Scheme: "ssh"},
		{Kind: Net},
		{Kind: Env, Name: "LD_PRELOAD"},
		{Kind: Env, Name: "X"},
		{Kind: Env},
		run("x " + strings.Repeat("long ", 60)), run("find . -exec"), run("git -c a=b push"), run("python3 -c pass"), run("tar xf a --to-command=x"),
		run("./x a"), run("../x"), run("/usr/bin/x"), run("/opt/x"), run("x é"), run("x !"), run("x ~"), run("x ?"), run("x [a]"), run("x a=b"), run("A=b"),
		{Kind: Exec, Argv: []Word{{Text: "x"}, {Text: ""}}},
		{Kind: Exec, Argv: []Word{{Text: "x"}, {Text: "a b"}}},
		{Kind: Exec, Argv: []Word{{Text: "x\u00a0y"}}},
	}
	for _, c := range randomCommands {
		effects = append(effects, run(c))
	}
	made := 0
	for _, defaults := range []Defaults{asking(), {}} {
		for _, e := range effects {
			f := File{Defaults: defaults}
			d := compile(t, f).Decide([]Effect{e})
			if d.Action == Allow || !apply(t, &f, d.Change) {
				continue
			}
			made++
			if after := compile(t, f).Decide([]Effect{e}); after.Action != Allow {
				t.Errorf("%v is %v by %s; after %q it is %v by %s", e, d.Action, d.Rule, d.Change, after.Action, after.Rule)
			}
		}
	}
	if made < 30 {
		t.Errorf("only %d changes were named", made)
	}
}

// apply makes a change, and reports whether it is one that can be made.
func apply(t *testing.T, f *File, change string) bool {
	t.Helper()
	text := func(quoted string) []string {
		s, err := strconv.Unquote(quoted)
		if err != nil {
			t.Errorf("%s: %v", change, err)
		}
		return []string{s}
	}
	if m := changeRun.FindStringSubmatch(change); m != nil {
		f.Commands = append(f.Commands, Rule{ID: "change", Action: Allow, Run: text(m[1])})
		return true
	}
	if m := changePath.FindStringSubmatch(change); m != nil {
		ops := map[string]Kind{"read": Read, "write": Write}
		f.Paths = append(f.Paths, Rule{ID: "change", Action: Allow, Ops: []Kind{ops[m[1]]}, Paths: text(m[2])})
		return true
	}
	if m := changeHost.FindStringSubmatch(change); m != nil {
		f.Net = append(f.Net, Rule{ID: "change", Action: Allow, Hosts: text(m[1])})
		return true
	}
	if m := changeEnv.FindStringSubmatch(change); m != nil {
		f.Env = append(f.Env, m[1])
		return true
	}
	return false
}
