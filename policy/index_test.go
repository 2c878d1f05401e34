package policy

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

// FuzzTheIndexDecidesLikeTheRulesOneByOne compares what a policy says to random
// effects with what it says when every rule is tried: the same rule decides.
func FuzzTheIndexDecidesLikeTheRulesOneByOne(f *testing.F) {
	must.Long(f)
	for seed := range uint64(600) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		file, further := mixedFile(r), []File(nil)
		if r.IntN(3) == 0 {
			further = []File{mixedFile(r)}
		}
		p := compile(t, file, further...)
		if r.IntN(3) == 0 {
			file.Clients = []Client{{Name: "*", File: mixedFile(r)}}
			p = compile(t, file, further...).For("c", "")
		}
		all := oneByOne(p)
		for range 12 {
			e := mixedEffect(r)
			got, want := p.judge(&e), all.judge(&e)
			if got != want {
				t.Fatalf("%+v: %v by %s%s, one by one %v by %s%s", e, got.action, got.id, idOf(got.rule), want.action, want.id, idOf(want.rule))
			}
			if got, want := p.Decide([]Effect{e}), all.Decide([]Effect{e}); got.Always != want.Always || got.Profile != want.Profile {
				t.Fatalf("%+v: %+v, one by one %+v", e, got, want)
			}
		}
	})
}

func idOf(r *rule) string {
	if r == nil {
		return ""
	}
	return r.ID + " at " + r.source
}

// oneByOne is a policy of the same rules whose indexes find all of them for every
// effect.
func oneByOne(p *Policy) *Policy {
	out := *p
	out.sets = nil
	for _, s := range p.sets {
		next := newRuleSet()
		next.env, next.envLike, next.classes = s.env, s.envLike, s.classes
		for name, list := range s.byName {
			next.byName[name] = &commandRules{unindexed(list.blocks), unindexed(list.allows)}
		}
		next.anyName = commandRules{unindexed(s.anyName.blocks), unindexed(s.anyName.allows)}
		next.blocks, next.allows = pathRules{indexed: unindexed(s.blocks.indexed)}, pathRules{indexed: unindexed(s.allows.indexed)}
		next.net = unindexed(s.net)
		out.sets = append(out.sets, next)
	}
	return &out
}

func unindexed[T any](x indexed[T]) (all indexed[T]) {
	for _, item := range x.list {
		all.add(item)
	}
	return all
}

var (
	mixedCommands = strings.Split("npm run build x|npm pub|npm pu…|npm i left|npm -g rm x|kubectl get po x|kubectl -n a delete pods/x|docker rm -f x|docker container remove x|git -C /w push -f o m|git …|git pu…|"+
		"yarn add x|pnpm --filter a test|tool a b c|tool -x b a|tool …|tool b…|sudo git push|env|env tool a|bash -c 'git push'|./tool a|/usr/bin/tool a b|sub/tool a|x|x y|python -m pip install x|npx npm@9 publish|a b -- -c d|cargo +nightly t", "|")
	mixedPatterns = strings.Split("npm {publish,unpublish} **|npm run *|npm run {build,test} **|npm add **|kubectl delete pod **|kubectl * po **|docker rm **|git push **|git {push,pull} * main **|git p* **|tool a **|tool * b **|tool b c|tool ** c **|"+
		"tool -x a **|tool {-x,a} b **|{tool,x} a **|* push **|** push|* a **|t* a **|** x|x y|x|x <int>|pip install **|./tool a **|{sub/tool,/usr/bin/tool} **|test|cargo test **|git -C * push **|env ** tool **", "|")
	mixedGlobs = strings.Split("/|/**|/w|/w/**|/w/*|/w/a/**|/w/a|**/.env|**/.env/**|**/*.pem|**/*.tar.gz|/w/**/a/b|/w/*/a|/w/*/a/**|/w/**/*.pem|/w/a/*.pem|/w/[ab]/b|/w/\\*/a|/W/A/**|**/a/**/b|**/**/a|/w/*/b/**/a.pem|**/a/*|/w/?|~/**|~/.x/*", "|")
	mixedPaths = strings.Split("/|/w|/w/a|/w/a/b|/w/b/a|/w/A|/W/a|/w/.env|/w/a/.env|/w/.env/a|/w/k.pem|/w/a/k.pem|/w/x.tar.gz|/w/a/x/b|/w/*/a|/w/b/b/c/a.pem|/etc|/etc/passwd|/home/u|/home/u/.x/y|/wa|/w/a.", "|")
	mixedHosts = strings.Split("a.test|b.a.test|c.b.a.test|test|xa.test|a.test.|10.0.0.1|", "|")
	mixedNets  = strings.Split("a.test|*.a.test|*.test|*.b.a.test|10.0.0.1|test", "|")
)

// mixedFile is a file of many rules with words in common.
func mixedFile(r *rand.Rand) File {
	f := randomFile(r)
	for i := range r.IntN(30) {
		rule := Rule{ID: pick(r, []string{"a", "b", "c"}), Line: i + 1, Action: Action(r.IntN(3))}
		rule.Always = rule.Action == Ask && r.IntN(4) == 0
		if rule.Action != Deny && r.IntN(4) == 0 {
			rule.Profile = pick(r, []string{profileReadOnly, profileWorkspace})
		}
		switch r.IntN(3) {
		case 0:
			rule.Run, rule.Except, rule.Dirs = []string{pick(r, mixedPatterns)}, some(r, mixedPatterns), some(r, mixedGlobs)
			rule.Run = append(rule.Run, some(r, mixedPatterns)...)
			f.Commands = append(f.Commands, rule)
		case 1:
			rule.Paths, rule.Except = append(some(r, mixedGlobs), pick(r, mixedGlobs)), some(r, mixedGlobs)
			f.Paths = append(f.Paths, rule)
		default:
			rule.Hosts, rule.Except = append(some(r, mixedNets), pick(r, mixedNets)), some(r, mixedNets)
			f.Net = append(f.Net, rule)
		}
	}
	return f
}

func mixedEffect(r *rand.Rand) Effect {
	e := randomEffect(r)
	switch {
	case r.IntN(4) == 0 || e.Kind == Opaque || e.Kind == Env:
	case e.Kind == Exec:
		e.Argv = words(pick(r, mixedCommands))
	case e.Kind == Net:
		e.Host = pick(r, mixedHosts)
	default:
		e.Path = pick(r, mixedPaths)
		e.Canonical = pick(r, append(mixedPaths, e.Path, e.Path, ""))
		e.Part = pick(r, []string{"", "", PartNames, ".pem"})
	}
	return e
}

// What is looked at and does not match takes time all the same: a long command, each
// end of which is looked at, must use its bounds up.
func TestLookingForRulesCountsAsWork(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "push", Action: Ask, Run: []string{"* push --force **"}}, Rule{ID: "publish", Action: Ask, Run: []string{"npm publish --force **"}})
	for _, text := range []string{"nice push nice push", "npm publish x", "npm -x y z"} {
		argv := words(text)
		s := search{policy: p, noted: make(map[*rule]bool), left: maxScan}
		s.suffix(argv)
		if len(s.found) > 0 {
			t.Errorf("%s matches %s", s.found[0].ID, text)
		}
		if used := maxScan - s.left; used < len(argv) {
			t.Errorf("%s: %d words were counted", text, used)
		}
	}
}
