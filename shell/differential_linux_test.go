package shell_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell"
)

type analysis func(script, dir string, env []string) ([]policy.Effect, error)

func predict(script, dir string, env []string) ([]policy.Effect, error) {
	o := shell.Options{Workspace: dir, Env: make(map[string]string)}
	for _, entry := range env {
		name, text, _ := strings.Cut(entry, "=")
		o.Env[name] = text
	}
	return shell.New(o).Effects(script, dir), nil
}

// leastAnalysed is the share of random scripts that must not be Opaque.
const leastAnalysed = 0.6

func fixture() map[string]string {
	return map[string]string{
		"w/": "", "home/": "", "out/": "", "w/sub/": "", "w/.git/": "", "w/a.t": "p q\n", "w/b.t": "-exec\n", "w/.h.t": "", "w/sub/c.t": "a[$(r)]\n", "w/.git/HEAD": "ref: refs/heads/main\n",
		"w/-exec": "", "w/a b": "", "w/$(r)": "", "w/;": "", "w/p": "", "w/{}": "", "w/s.sh": "r sourced\n", "home/a": "", "home/s.sh": "r home\n",
		"w/tool": "-> ../bin/canary", "w/sub/p": "-> ../../bin/canary", "w/sub/evil": "-> ../../bin/canary", "w/link": "-> sub", "w/l.t": "-> a.t", "w/away": "-> ../out",
	}
}

const procSubst = "/dev/fd/63"

var descriptor = regexp.MustCompile("^/dev/fd/[0-9]+")

// TestBashDoesNothingThatWasNotPredicted runs random scripts in bash: every program that ran, and
// every file that was read or written, must be an effect, or the script Opaque. TOOLD_SCRIPTS and
// TOOLD_SEED choose how many and which.
func TestBashDoesNothingThatWasNotPredicted(t *testing.T) {
	must.Long(t)
	seed, count := number(t, "TOOLD_SEED", 1), number(t, "TOOLD_SCRIPTS", 20000)
	shown := int64(number(t, "TOOLD_SHOWN", 20))
	g := readGrammar(t)
	var next, known, cut, unconfirmed, failures atomic.Int64
	var workers sync.WaitGroup
	var found sync.Map
	why := reasons{counts: make(map[string]int)}
	for range 2 * runtime.GOMAXPROCS(0) {
		m := newMachine(t, fixture())
		c := comparison{m, predict, strictRules(t, m.base+"/w")}
		// Ends when all scripts are taken.
		workers.Go(func() {
			for n := next.Add(1); n <= int64(count); n = next.Add(1) {
				script := g.script(seed, uint64(n))
				v, err := c.compare(script, n%64 == 0)
				if err != nil {
					t.Errorf("script %d: %v\n%s", n, err, script)
					return
				}
				if v.cut {
					cut.Add(1)
				}
				if v.opaque {
					why.add(v.effects)
					continue
				}
				known.Add(1)
				if v.missed == "" {
					continue
				}
				if v, err = c.compare(script, true); err == nil && v.missed == "" {
					unconfirmed.Add(1)
					continue
				}
				if failures.Add(1) > shown {
					continue
				}
				small, v := c.smallest(script)
				if _, again := found.LoadOrStore(small, true); again {
					continue
				}
				t.Errorf("script %d of TOOLD_SEED=%d: bash %s, which was not predicted, by\n%s\npredicted %v\nshortened from\n%s", n, seed, v.missed, small, v.effects, script)
			}
		})
	}
	workers.Wait()
	if n := failures.Load(); n > shown {
		t.Errorf("%d more scripts did what was not predicted", n-shown)
	}
	if cut.Load() > known.Load()/2 {
		t.Errorf("%d of %d scripts did not end", cut.Load(), known.Load())
	}
	if float64(known.Load()) < leastAnalysed*float64(count) {
		t.Errorf("only %d of %d scripts can be analysed", known.Load(), count)
	}
	t.Logf("TOOLD_SEED=%d: %d scripts, %d of them not Opaque (%d %%), %d that did not end, %d failures that a bash of their own did not confirm; Opaque:%s",
		seed, count, known.Load(), known.Load()*100/max(next.Load()-1, 1), cut.Load(), unconfirmed.Load(), &why)
}

// TestShDoesNothingThatWasNotPredicted gives the scripts to sh, which is dash on Debian.
func TestShDoesNothingThatWasNotPredicted(t *testing.T) {
	must.Long(t)
	t.Parallel()
	seed, count := number(t, "TOOLD_SEED", 1), number(t, "TOOLD_SCRIPTS", 3000)
	m, g := newMachine(t, fixture()), readGrammar(t)
	c := comparison{m, predict, strictRules(t, m.base+"/w")}
	known, unconfirmed := 0, 0
	for n := range count {
		script := "sh -c '" + strings.ReplaceAll(g.script(seed, n+1), "'", `'\''`) + "'"
		v, err := c.compare(script, true)
		if err != nil {
			t.Fatalf("%v\n%s", err, script)
		}
		if !v.opaque {
			known++
		}
		if v.missed != "" {
			if again, err := c.compare(script, true); err == nil && again.missed == "" {
				unconfirmed++ // what a script before left running did it
				continue
			}
			small, v := c.smallest(script)
			t.Errorf("script %d of TOOLD_SEED=%d: sh %s, which was not predicted, by\n%s\npredicted %v\nshortened from\n%s", n+1, seed, v.missed, small, v.effects, script)
		}
	}
	t.Logf("TOOLD_SEED=%d: %d scripts, %d of them not Opaque, %d failures that a second run did not confirm", seed, count, known, unconfirmed)
}

// TestScriptsThatOnceHidSomething plays earlier findings.
func TestScriptsThatOnceHidSomething(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("testdata/differential.txt"))(t)
	m := newMachine(t, fixture())
	c := comparison{m, predict, strictRules(t, m.base+"/w")}
	script := ""
	for line := range strings.Lines(string(text)) {
		if line != "--\n" {
			if !strings.HasPrefix(line, "# ") {
				script += line
			}
			continue
		}
		v := must.Get(c.compare(strings.TrimSuffix(script, "\n"), true))(t)
		if v.missed != "" {
			t.Errorf("bash %s, which was not predicted, by\n%s\npredicted %v", v.missed, script, v.effects)
		}
		script = ""
	}
}

type reasons struct {
	mu     sync.Mutex
	counts map[string]int
}

func (r *reasons) add(effects []policy.Effect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[string]bool)
	for _, e := range effects {
		if e.Kind == policy.Opaque && !seen[e.Why] {
			seen[e.Why] = true
			r.counts[e.Why]++
		}
	}
}

func (r *reasons) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	whys := slices.SortedFunc(maps.Keys(r.counts), func(a, b string) int { return cmp.Compare(r.counts[b], r.counts[a]) })
	var out strings.Builder
	for _, why := range whys[:min(len(whys), 40)] {
		fmt.Fprintf(&out, "\n%6d %s", r.counts[why], why)
	}
	return out.String()
}

type comparison struct {
	*machine
	analysis
	rules *policy.Policy
}

// carries reports whether an effect runs code that the strict policy does not allow.
func (c comparison) carries(e policy.Effect) bool {
	switch e.Kind {
	case policy.Env:
		return slices.Contains([]string{"BASH_ENV", "ENV", "PS4"}, e.Name)
	case policy.Exec:
		known := slices.Contains([]string{"awk", "bash", "sed", "sh", "sort"}, filepath.Base(e.Argv[0].Text))
		return known && c.rules.Decide([]policy.Effect{e}).Action != policy.Allow
	}
	return false
}

type verdict struct {
	opaque  bool
	carried bool
	missed  string // what bash did that was not predicted
	cut     bool
	effects []policy.Effect
}

func (c comparison) compare(script string, own bool) (v verdict, err error) {
	if err := c.watch.reset(); err != nil {
		return v, err
	}
	if v.effects, err = c.analysis(script, c.base+"/w", c.env); err != nil {
		return v, err
	}
	if _, _, err = c.watch.take(); err != nil { // the analysis looks at the files, too
		return v, err
	}
	for _, e := range v.effects {
		v.opaque = v.opaque || e.Kind == policy.Opaque && !strings.HasPrefix(e.Why, "bash refuses it") // that runs nothing
		v.carried = v.carried || c.carries(e)
	}
	if v.opaque {
		return v, nil
	}
	o, err := c.run(script, own)
	if v.cut = o.cut; !v.carried {
		v.missed = c.unpredicted(v.effects, o)
	}
	return v, err
}

func (c comparison) smallest(script string) (string, verdict) {
	fails := func(script string) bool {
		v, err := c.compare(script, true)
		return err == nil && v.missed != "" && !v.cut
	}
	script = shrink(script, fails)
	v, _ := c.compare(script, true)
	return script, v
}

func (c comparison) unpredicted(effects []policy.Effect, o observed) string {
	path := stands(effects, func(e policy.Effect) bool { return e.Kind == policy.Env && e.Name == "PATH" })
	for _, call := range o.ran {
		if !stands(effects, func(e policy.Effect) bool { return e.Kind == policy.Exec && c.matches(e.Argv, call, path) }) {
			return fmt.Sprintf("ran %q", call)
		}
	}
	for _, path := range o.wrote {
		if !stands(effects, func(e policy.Effect) bool { return e.Kind == policy.Write && covers(e, path) }) {
			return fmt.Sprintf("wrote %s", path)
		}
	}
	for _, path := range o.read {
		if !stands(effects, func(e policy.Effect) bool { return e.Kind == policy.Read && covers(e, path) }) {
			return fmt.Sprintf("read %s", path)
		}
	}
	return ""
}

func stands(effects []policy.Effect, wanted func(policy.Effect) bool) bool {
	for _, e := range effects {
		if !e.Possible && wanted(e) {
			return true
		}
	}
	return false
}

// matches reports whether an effect may be a call. path: the script may have set PATH.
func (c comparison) matches(words []policy.Word, call []string, path bool) bool {
	if len(words) == 0 || len(call) == 0 {
		return false
	}
	program, name := words[0].Text, call[0]
	switch {
	case words[0].Dynamic:
	case filepath.Dir(name) == c.base+"/bin" && filepath.Base(program) == filepath.Base(name):
	case path && program == filepath.Base(name):
	case program == name, strings.Contains(program, "/") && strings.HasSuffix(name, "/"+filepath.Clean(program)): // exec makes it absolute
	default:
		return false
	}
	return may(words[1:], call[1:])
}

// may reports whether words may be those of a call.
func may(words []policy.Word, call []string) bool {
	if len(words) == 0 {
		return len(call) == 0
	}
	w, rest := words[0], words[1:]
	if !w.Dynamic {
		return len(call) > 0 && call[0] == w.Text && may(rest, call[1:])
	}
	if w.Many && may(rest, call) {
		return true
	}
	if len(call) == 0 || !strings.HasPrefix(call[0], w.Text) {
		return false
	}
	for n := 1; n <= len(call); n++ {
		if may(rest, call[n:]) {
			return true
		}
		if !w.Many && (n == len(call) || w.Text == "" || !strings.HasPrefix(call[n], w.Text)) {
			return false
		}
	}
	return false
}

func covers(e policy.Effect, path string) bool {
	switch {
	case e.Part == policy.PartAttributes:
		return false
	case e.Unknown, e.Path == path, e.Canonical == path:
		return true
	case !e.Tree || e.Part == policy.PartNames || !strings.HasSuffix(path, e.Part):
		return false
	}
	return strings.HasPrefix(path, e.Path+"/") || strings.HasPrefix(path, e.Canonical+"/")
}
