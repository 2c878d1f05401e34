package shell

import (
	"reflect"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/table"
	"github.com/toold/toold/shell/programs"
)

func others() map[string]func(s *state) {
	body := &syntax.Stmt{}
	return map[string]func(s *state){
		"dead":       func(s *state) { s.dead = true },
		"vars":       func(s *state) { s.vars.Put("x", variable{value: value{text: "other"}}) },
		"funcs":      func(s *state) { s.funcs.Put("f", function{body}) },
		"params":     func(s *state) { s.params = params{words: []word{plainWord("other")}, known: true} },
		"locals":     func(s *state) { s.locals.Put("x", local{before: variable{value: value{text: "other"}}}) },
		"dirs":       func(s *state) { s.dirs = []string{"/other"} },
		"failed":     func(s *state) { s.failed = []string{"/other"} },
		"left":       func(s *state) { s.left = nil },
		"split":      func(s *state) { s.split = true },
		"noglobs":    func(s *state) { s.noglobs = true },
		"closed":     func(s *state) { s.closed = true },
		"strange":    func(s *state) { s.strange = true },
		"jobless":    func(s *state) { s.jobless = true },
		"input":      func(s *state) { s.input = "other" },
		"pipedNames": func(s *state) { s.pipedNames = []programs.Operand{{Kind: programs.Write}} },
		"globstar":   func(s *state) { s.globstar = true },
		"traps":      func(s *state) { s.traps = []string{"other"} },
		"shown":      func(s *state) { s.shown = true },
		"disk":       func(s *state) { s.disk = &disk{}; s.disk.write("/other", true) },
	}
}

func both() *state {
	s := &state{
		vars: table.New[variable](), funcs: table.New[function](), locals: table.New[local](), params: params{words: []word{plainWord("a")}, known: true},
		dirs: []string{"/w"}, left: []string{"/v"}, input: "in", disk: &disk{},
	}
	s.vars.Put("x", variable{value: value{text: "a"}})
	return s
}

// A field that join leaves out would keep the value of one branch.
func TestEveryFieldOfAStateIsJoined(t *testing.T) {
	t.Parallel()
	w := &walker{Analyser: &Analyser{}, steps: maxSteps}
	change := others()
	for i := range reflect.TypeFor[state]().NumField() {
		name := reflect.TypeFor[state]().Field(i).Name
		if change[name] == nil {
			t.Errorf("field %s of state is not in this test: join it first", name)
			continue
		}
		if name == "dead" {
			continue
		}
		plain, changed := both(), both()
		change[name](changed)
		if !w.join(plain, changed) {
			t.Errorf("%s: a state that differs in it changes nothing", name)
		}
		if reflect.DeepEqual(plain, both()) {
			t.Errorf("%s: what the other branch says is lost", name)
		}
		if w.join(plain, changed) {
			t.Errorf("%s: joining the same state again changes it", name)
		}
	}
	dead, live := both(), both()
	dead.dead = true
	change["vars"](live)
	if w.join(live, dead) || !w.join(dead, live) || dead.dead || dead.get("x").text != "other" {
		t.Error("a branch that is never left joins as nothing")
	}
}

func TestEveryFieldOfAVariableIsJoined(t *testing.T) {
	t.Parallel()
	marked := map[string]variable{"readonly": {readonly: true}, "array": {array: true}, "integer": {integer: true}, "exported": {exported: true}, "unset": {unset: true}, "refers": {refers: true}}
	for i := range reflect.TypeFor[variable]().NumField() {
		name := reflect.TypeFor[variable]().Field(i).Name
		if name == "value" || name == "hash" {
			continue
		}
		v, ok := marked[name]
		if !ok || v.or(variable{}) != v || (variable{}).or(v) != v {
			t.Errorf("%s is lost where two branches meet", name)
		}
	}
	if v := (variable{hash: true}); v.or(variable{}).hash || v.orUnset().hash || !v.or(v).hash {
		t.Error("hash is not certain")
	}
	a, b := value{text: "1"}, value{text: "2"}
	if got := a.or(b); !got.dynamic || !got.number || got.text != "" {
		t.Errorf("two numbers are %+v", got)
	}
	if got := a.or(value{text: "x"}); !got.dynamic || got.number {
		t.Errorf("a number and a text are %+v", got)
	}
}
