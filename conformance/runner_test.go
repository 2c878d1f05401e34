//go:build linux

package conformance

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRunnerFailsFalseCases plays cases that expect what does not happen. A
// runner that passes one of them would pass anything.
func TestRunnerFailsFalseCases(t *testing.T) {
	t.Parallel()
	cases, err := readCases(filepath.Join("testdata", "false.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	bin := daemonOrSkip(t)
	for i, l := range cases {
		t.Run(l.id, func(t *testing.T) {
			skipMostFalse(t, i)
			t.Parallel()
			want := l.c.MustFail
			var reasons []string
			if l.err != nil {
				reasons, want = []string{l.err.Error()}, "unknown field"
			} else {
				defer turn(false)()
				bad, late := play(t.Context(), bin, t.TempDir(), l.c, unchecked.add)
				reasons = append(bad, late...)
			}
			all := strings.Join(reasons, "\n")
			if len(reasons) == 0 || !regexp.MustCompile(want).MatchString(all) {
				t.Errorf("the case failed with %q, want %q", all, want)
			}
		})
	}
}

func TestMatchersHoldAndRefuse(t *testing.T) {
	t.Parallel()
	const frame = `{"s":"héllo\nworld","n":3,"f":1.5,"b":true,"z":null,"l":["a","b"],"o":{"k":[{"x":1},{"x":2}]},"a.b":"dotted"}`
	v := vars{"kept": float64(3)}
	for _, c := range []struct {
		matcher string
		want    bool
	}{
		{`{}`, true},
		{`{"n":3}`, true},
		{`{"n":4}`, false},
		{`{"n":"3"}`, false},
		{`{"missing":3}`, false},
		{`{"z":null}`, true},
		{`{"missing":null}`, false},
		{`{"n":"$kept"}`, true},
		{`{"f":"$kept"}`, false},
		{`{"s":"$kept"}`, false},
		{`{"n":"$unkept"}`, false},
		{`{"o.k.0.x":1}`, true},
		{`{"o.k.-1.x":2}`, true},
		{`{"o.k.2.x":2}`, false},
		{`{"a.b":"dotted"}`, true},
		{`{"o":{"k":[{"x":1},{"x":2}]}}`, true},
		{`{"o":{"k":[{"x":1}]}}`, false},
		{`{"o":{}}`, true},
		{`{"l":["a","b"]}`, true},
		{`{"l":["b","a"]}`, false},
		{`{"l":["a",{"$re":"^b$"}]}`, true},
		{`{"s":{"$type":"string"},"n":{"$type":"number"},"b":{"$type":"boolean"},"l":{"$type":"array"},"o":{"$type":"object"},"z":{"$type":"null"}}`, true},
		{`{"n":{"$type":"integer"}}`, true},
		{`{"f":{"$type":"integer"}}`, false},
		{`{"n":{"$type":"string"}}`, false},
		{`{"s":{"$re":"llo.w"}}`, false},
		{`{"s":{"$re":"(?s)llo.w"}}`, true},
		{`{"s":{"$re":"(?s)(?=.*world)(?=.*h)"}}`, true},
		{`{"s":{"$re":"(?s)(?=.*world)(?=.*moon)"}}`, false},
		{`{"s":{"$re":"(?s)^(?:h)(?!x)"}}`, false},
		{`{"s":{"$re":"(?!hé)h"}}`, false},
		{`{"s":{"$re":"(?=[(]|w)world"}}`, true},
		{`{"n":{"$re":"3"}}`, false},
		{`{"s":{"$has":"llo"}}`, true},
		{`{"s":{"$has":["llo","wor"]}}`, true},
		{`{"s":{"$has":["llo","moon"]}}`, false},
		{`{"l":{"$has":"a"}}`, true},
		{`{"l":{"$has":"c"}}`, false},
		{`{"s":{"$hasnt":"moon"}}`, true},
		{`{"s":{"$hasnt":["moon","world"]}}`, false},
		{`{"missing":{"$hasnt":"moon"}}`, false},
		{`{"l":{"$len":2},"s":{"$len":11}}`, true},
		{`{"l":{"$len":3}}`, false},
		{`{"n":{"$in":[1,2,3]}}`, true},
		{`{"n":{"$in":[1,2]}}`, false},
		{`{"missing":{"$absent":true},"z":{"$absent":true}}`, true},
		{`{"n":{"$absent":true}}`, false},
		{`{"n":{"$absent":false}}`, true},
		{`{"n":{"$any":true},"z":{"$any":true}}`, true},
		{`{"missing":{"$any":true}}`, false},
		{`{"l":{"$join":"ab"}}`, true},
		{`{"l":{"$join":"ba"}}`, false},
		{`{"s":{"$join":"héllo\nworld"}}`, false},
		{`{"l":{"$join":{"$re":"^ab$"}}}`, true},
		{`{"n":{"$in":[3],"$type":"string"}}`, false},
		{`{"n":{"$unheard":1}}`, false},
		{`{"$conn":"a"}`, true},
		{`{"$conn":"b"}`, false},
		{`{"$save":{"x":"n"}}`, true},
	} {
		var m matcher
		var f any
		if err := errorsOf(json.Unmarshal([]byte(c.matcher), &m), json.Unmarshal([]byte(frame), &f)); err != nil {
			t.Fatalf("%s: %v", c.matcher, err)
		}
		if why := v.match(m, "a", f); (why == "") != c.want {
			t.Errorf("%s: match says %q, want a match: %v", c.matcher, why, c.want)
		}
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestSavedValuesAreKept(t *testing.T) {
	t.Parallel()
	v := vars{}
	frame := map[string]any{"id": "m1", "list": []any{map[string]any{"id": "m2"}}}
	m := matcher{"id": map[string]any{"$save": "first"}, "$save": map[string]any{"last": "list.-1.id"}}
	if err := v.keep(m, frame); err != nil {
		t.Fatal(err)
	}
	if v["first"] != "m1" || v["last"] != "m2" {
		t.Errorf("kept %v", v)
	}
	if err := v.keep(matcher{"$save": map[string]any{"x": "none"}}, frame); err == nil {
		t.Error("a value that is not there was kept")
	}
}

func TestEachMatcherGetsAFrameOfItsOwn(t *testing.T) {
	t.Parallel()
	// Matcher 0 takes frames 0 and 1, matcher 1 only frame 0.
	allowed := [][]bool{{true, true}, {true, false}}
	ok := func(m, f int) bool { return allowed[m][f] }
	if got := assign(2, 2, ok); got[0] != 1 || got[1] != 0 {
		t.Errorf("assigned %v, want [1 0]", got)
	}
	if got := assign(2, 1, ok); got[0] >= 0 && got[1] >= 0 {
		t.Errorf("one frame was given to two matchers: %v", got)
	}
	if got := assignInOrder(2, 2, ok); got[0] != 0 || got[1] != -1 {
		t.Errorf("in order: assigned %v, want [0 -1]", got)
	}
}

func TestCasesThatAreNotUnderstoodAreErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{`, `{"id":"x","dialect":"stream","send":[{"jump":1}]}`, `{"id":"x","dialect":"stream","expect":{"smell":1}}`,
		`{"id":"x","dialect":"stream","setup":{"weather":1}}`,
	} {
		if l := readCase("f:1", []byte(text)); l.err == nil {
			t.Errorf("%s was understood", text)
		}
	}
	if isDialect("telepathy") || isDialect("") || !isDialect("stream") {
		t.Error("the dialects are not told apart")
	}
}

// The policies of the cases are files like those of users: what is written here
// is what the daemon reads.
func TestPoliciesOfCasesBecomeRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ policy, want string }{
		{`"allow_all"`, `"unanalysable":"ask"`},
		{`"deny_all"`, `"bash":"deny"`},
		{`[{"deny":"bash rm"},{"allow":"bash *"}]`, `{"decision":"deny","id":"rule-1","run":["rm **"]},{"decision":"allow","id":"rule-2","run":["**"]}`},
		{`[{"deny":"write_file *.pem"}]`, `"match":["${workspace}/*.pem"],"ops":["write"]`},
	} {
		got, err := policyText(setup{Policy: json.RawMessage(c.policy)})
		if err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s became %s (%v), want %s in it", c.policy, got, err, c.want)
		}
	}
	for _, bad := range []string{`"allow_some"`, `{"a":1}`, `[{"deny":"fly away"}]`} {
		if got, err := policyText(setup{Policy: json.RawMessage(bad)}); err == nil {
			t.Errorf("%s became %s", bad, got)
		}
	}
}
