package policy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/shell/programs"
)

// FuzzRulesOnlyMoveADecisionOneWay changes random policies of one or more files
// in one respect:
//
//   - a denying rule, another effect, a stricter default, headless mode, another
//     file that can only tighten: none makes a decision more permissive;
//   - an allowing rule, a preset, a variable that may be set: none makes one
//     stricter;
//   - an asking rule never makes a decision allow. It makes one ask that was denied
//     only where a default denied it: a default is for what no rule matches, and
//     whoever writes both wants to be asked. In a file that can only tighten it
//     does not even do that;
//   - the order of the rules and of the effects has no meaning for the action.
func FuzzRulesOnlyMoveADecisionOneWay(f *testing.F) {
	must.Long(f)
	for seed := range uint64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 3))
		base, more := randomFile(r), randomFile(r)
		effects := []Effect{randomEffect(r), randomEffect(r)}[:1+r.IntN(2)]
		p := compile(t, base)
		before := p.Decide(effects)
		switch r.IntN(6) {
		case 0:
			tightens(t, before, compile(t, withRule(r, base, Deny)).Decide(effects), effects)
		case 1:
			tightens(t, before, compile(t, harder(r, base)).Decide(effects), effects)
		case 2:
			tightens(t, before, compile(t, base, more).Decide(effects), effects)
		case 3:
			if after := compile(t, wider(r, base)).Decide(effects); after.Action < before.Action {
				t.Errorf("%v became %v by %s for %v", before.Action, after.Action, after.Rule, effects)
			}
		case 4:
			after := compile(t, withRule(r, base, Ask)).Decide(effects)
			if after.Action > before.Action && (after.Action == Allow || byRule(p, before)) {
				t.Errorf("an asking rule made %v of %v for %v", after.Action, before.Action, effects)
			}
		default:
			after := compile(t, shuffled(r, base)).Decide([]Effect{effects[len(effects)-1], effects[0]})
			if after.Action != before.Action {
				t.Errorf("another order made %v of %v for %v", after.Action, before.Action, effects)
			}
		}
		tightens(t, before, p.Decide(append(slices.Clip(effects), randomEffect(r))), effects)
	})
}

// tightens fails when a decision became more permissive.
func tightens(t *testing.T, before, after Decision, effects []Effect) {
	t.Helper()
	if after.Action > before.Action {
		t.Errorf("%v by %s became %v by %s for %v", before.Action, before.Rule, after.Action, after.Rule, effects)
	}
}

// byRule reports whether a rule, and no default, made the decision.
func byRule(p *Policy, d Decision) bool { return p.judge(&d.Effect).rule != nil }

// withRule is a file with one more random rule.
func withRule(r *rand.Rand, f File, a Action) File {
	f.Commands, f.Paths, f.Net = slices.Clone(f.Commands), slices.Clone(f.Paths), slices.Clone(f.Net)
	addRandomRule(r, &f, a)
	return f
}

// harder is a file whose defaults or mode are.
func harder(r *rand.Rand, f File) File {
	if r.IntN(4) == 0 {
		f.Headless = true
		return f
	}
	list := f.Defaults.list()
	d := list[r.IntN(len(list))].action
	*d = max(*d-1, Deny)
	return f
}

// wider is a file that allows more.
func wider(r *rand.Rand, f File) File {
	switch r.IntN(4) {
	case 0:
		f.Presets = []string{presetReadOnly, presetWorkspace}
	case 1:
		f.Env = append(slices.Clip(f.Env), pick(r, randomNames))
	default:
		return withRule(r, f, Allow)
	}
	return f
}

func shuffled(r *rand.Rand, f File) File {
	for _, list := range []*[]Rule{&f.Commands, &f.Paths, &f.Net} {
		*list = slices.Clone(*list)
		r.Shuffle(len(*list), func(i, j int) { (*list)[i], (*list)[j] = (*list)[j], (*list)[i] })
	}
	return f
}

// TestDenyingRulesAndEffectsNeverLoosen adds denying rules, and effects, to random
// policies and calls.
func TestDenyingRulesAndEffectsNeverLoosen(t *testing.T) {
	must.Long(t)
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		base, effects := randomFile(r), []Effect{randomEffect(r)}
		p := compile(t, base)
		before := p.Decide(effects)
		tightens(t, before, compile(t, withRule(r, base, Deny)).Decide(effects), effects)
		tightens(t, before, p.Decide(append(effects, randomEffect(r))), effects)
	}
}

// An asking rule of the workspace would make a question, and thus perhaps an
// approval, of what the user's file denies.
func TestAFurtherFileCannotAskForWhatIsDenied(t *testing.T) {
	t.Parallel()
	asks := File{Name: "ws", Defaults: asking(), Commands: []Rule{{ID: "a", Action: Ask, Run: []string{"**"}}}, Paths: []Rule{{ID: "b", Action: Ask, Paths: []string{"/**"}}}, Net: []Rule{{ID: "c", Action: Ask, Hosts: []string{"a.test"}}}}
	for _, e := range []Effect{run("x"), read("/x"), write("/w/x"), {Kind: Net, Host: "a.test"}} {
		if d := compile(t, File{Name: "user"}, asks).Decide([]Effect{e}); d.Action != Deny {
			t.Errorf("%v: %v by %s", e, d.Action, d.Rule)
		}
		open := File{Name: "user", Defaults: Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow, Deny}}
		if d := compile(t, open, asks).Decide([]Effect{e}); d.Action != Ask {
			t.Errorf("%v: %v by %s", e, d.Action, d.Rule)
		}
	}
}

// Which of two rules is tried first has no meaning, whatever part of an effect each is about.
func TestAQuestionDoesNotReplaceADenial(t *testing.T) {
	t.Parallel()
	some, brought := tree(write("/w")), tree(write("/w"))
	some.Part, brought.Part = programs.PartSome, programs.PartBrought
	user := File{
		Name: "user", Commands: []Rule{{ID: "push", Action: Ask, Run: []string{"git push **"}}},
		Paths: []Rule{
			{ID: "keys", Action: Deny, Paths: []string{"/w/keys/*.pem"}},
			{ID: "ws", Action: Ask, Paths: []string{"/w/**"}},
		},
	}
	further := File{Name: "ws", Commands: []Rule{{ID: "sudo", Action: Deny, Run: []string{"sudo **"}}}}
	decidesEach(t, compile(t, user, further), []decided{
		{run("git push"), Ask},
		{run("sudo git push"), Deny},
		{some, Deny},
		{brought, Deny},
		{tree(read("/w")), Ask}, // though the default denies it
		{tree(read("/w/keys")), Ask},
		{read("/w/keys/a.pem"), Deny},
	})
	user.Paths = user.Paths[:1]
	decidesEach(t, compile(t, user), []decided{{tree(read("/w")), Deny}, {tree(read("/w/keys")), Deny}})
}

var (
	randomCommands = strings.Split("ls|ls -l|git push|git push --force origin|git log -p|rm -rf x|rm x…|sudo rm x|curl a.b|find . -delete|x…|go test ./...|cat …|./x a|git -C /w push|python3 -c x|make", "|")
	randomPatterns = strings.Split("ls|ls **|git **|git push **|rm -r **|sudo **|** x|* x|go test **|git {push,log} *|./x *|python3 **|{rm,ls} **", "|")
	randomPaths    = strings.Split("/w|/w/a|/w/a/b|/w/A/b|/w/.env|/w/a/.env|/etc/passwd|/w/.git/config|/home/u/.ssh/id", "|")
	randomGlobs    = strings.Split("/**|/w/**|/w/*|**/.env|/w/a/**|/w/{a,b}/*|**/b|/etc/*", "|")
	randomHosts    = strings.Split("a.test|b.test|x.a.test|169.254.169.254", "|")
	randomNets     = strings.Split("a.test|*.a.test|*.test|169.254.169.254", "|")
	randomNames    = strings.Split("APP_X|LANG|PATH|GIT_DIR|APP_*|GIT_*|*", "|")
)

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// some is one of the texts now and then, and else nothing.
func some(r *rand.Rand, list []string) []string {
	if r.IntN(3) > 0 {
		return nil
	}
	return []string{pick(r, list)}
}

func randomDefaults(r *rand.Rand) Defaults {
	one := func() Action { return Action(r.IntN(3)) }
	return Defaults{one(), one(), one(), one(), Action(r.IntN(2)), one(), one(), one(), one()}
}

func randomFile(r *rand.Rand) File {
	f := File{
		Name: "p", Defaults: randomDefaults(r), Presets: []string{presetReadOnly, presetWorkspace}[:r.IntN(3)],
		Env: some(r, randomNames), Headless: r.IntN(6) == 0, FoldCase: r.IntN(6) == 0,
	}
	for range r.IntN(5) {
		addRandomRule(r, &f, Action(r.IntN(3)))
	}
	return f
}

func addRandomRule(r *rand.Rand, f *File, a Action) {
	switch rule := (Rule{ID: "r", Action: a}); r.IntN(3) {
	case 0:
		rule.Run, rule.Except, rule.Dirs = []string{pick(r, randomPatterns)}, some(r, randomPatterns), some(r, randomGlobs)
		f.Commands = append(f.Commands, rule)
	case 1:
		rule.Paths, rule.Except = []string{pick(r, randomGlobs)}, some(r, randomGlobs)
		f.Paths = append(f.Paths, rule)
	default:
		rule.Hosts, rule.Except, rule.Schemes = []string{pick(r, randomNets)}, some(r, randomHosts), some(r, []string{"http", "https"})
		f.Net = append(f.Net, rule)
	}
}

func randomEffect(r *rand.Rand) Effect {
	e := Effect{Possible: r.IntN(8) == 0}
	switch r.IntN(9) {
	case 0:
		return Effect{Kind: Opaque, Why: "x"}
	case 1:
		e.Kind, e.Name = Env, pick(r, randomNames[:4])
	case 2, 3:
		e.Kind, e.Host = Net, pick(r, randomHosts)
		if r.IntN(2) == 0 {
			e.Scheme, e.Port = "https", 443
		}
	case 4, 5, 6:
		e.Kind, e.Argv, e.Dirs = Exec, words(pick(r, randomCommands)), some(r, randomPaths)
	default:
		e.Kind, e.Path, e.Canonical = Kind(int(Read)+r.IntN(2)), pick(r, randomPaths), pick(r, randomPaths)
		e.Tree, e.Unknown = r.IntN(2) == 0, r.IntN(5) == 0
	}
	return e
}
