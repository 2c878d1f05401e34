package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
)

type sample struct {
	At     position
	Name   string            `yaml:"name"`
	Count  int               `yaml:"count"`
	Size   int16             `yaml:"size"`
	On     bool              `yaml:"on"`
	Words  []string          `yaml:"words"`
	Set    map[string]string `yaml:"set"`
	Items  []sampleItem      `yaml:"items"`
	Nested sampleItem        `yaml:"nested"`
}

type sampleItem struct {
	At position
	ID string `yaml:"id"`
}

func decodeSample(src []byte, got *sample) error {
	d := decoder{file: "f.yaml", lines: linesOf(src)}
	return d.decode(src, got)
}

func TestAByteOrderMarkIsSkipped(t *testing.T) {
	t.Parallel()
	var got sample
	if err := decodeSample([]byte("\ufeffname: x\ncount: 1\n"), &got); err != nil || got.Name != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestEveryTypeIsReadWithItsPlace(t *testing.T) {
	t.Parallel()
	src := `# a comment
name: "x: y"
count: -3
size: 32767
on: true
words: [a, "b c", 'd']
set: {A: "1", B: two}
items:
  - id: first   # note
  - {id: second}
nested:
  id: |
    text
`
	var got sample
	must.Do(t, decodeSample([]byte(src), &got))
	want := sample{
		At: position{2, 1}, Name: "x: y", Count: -3, Size: 32767, On: true,
		Words: []string{"a", "b c", "d"}, Set: map[string]string{"A": "1", "B": "two"},
		Items:  []sampleItem{{position{9, 5}, "first"}, {position{10, 5}, "second"}},
		Nested: sampleItem{position{12, 3}, "text\n"},
	}
	must.Match(t, want, got, cmp.AllowUnexported(position{}))
}

func TestValuesThatAreNotWrittenStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"", "\n# only a comment\n", "count: 4\n", "nested:\nwords:\ncount: 4\n"} {
		got := sample{Name: "default", Count: 4}
		if err := decodeSample([]byte(src), &got); err != nil {
			t.Errorf("%q: %v", src, err)
		}
		if got.Name != "default" || got.Count != 4 {
			t.Errorf("%q changed the defaults: %+v", src, got)
		}
	}
}

func TestFaultsAreRefusedWithPlaceAndExpectation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"name: a\nnmae: b\n", `f.yaml:2:1: unknown key "nmae": did you mean "name"?`},
		{"nested:\n  idd: b\n", `f.yaml:2:3: unknown key "idd" in nested: did you mean "id"?`},
		{"zzzzzzzz: 1\n", `f.yaml:1:1: unknown key "zzzzzzzz": expected one of count, items`},
		{"items:\n- id: a\n  x1234567: b\n", `f.yaml:3:3: unknown key "x1234567" in items[0]`},
		{"name: 3\n", `f.yaml:1:7: name: expected text (put it in quotes), found "3"`},
		{"name: yes\ncount: true\n", `f.yaml:2:8: count: expected a whole number, found "true"`},
		{"count: 1.5\n", `f.yaml:1:8: count: expected a whole number`},
		{"size: 65536\n", `f.yaml:1:7: size: 65536 is not a decimal whole number in range`},
		{"count: 0x10\n", `f.yaml:1:8: count: 0x10 is not a decimal whole number in range`},
		{"on: yes\n", `f.yaml:1:5: on: expected true or false, found "yes"`},
		{"words: a\n", `f.yaml:1:8: words: expected a list, found "a"`},
		{"words: [[a]]\n", `f.yaml:1:9: words[0]: expected text`},
		{"name:\n", `name: expected text (put it in quotes), found nothing`},
		{"- a\n", `f.yaml:1:1: the file: expected keys with values, found a list`},
		{"nested: [a]\n", `f.yaml:1:9: nested: expected keys with values, found a list`},
		{"name: a\nname: b\n", `f.yaml:2:1: not valid YAML: mapping key "name" already defined`},
		{"name: \"a\n", `not valid YAML`},
		{"name: a\n---\nname: b\n", `a second document`},
		{"name: &x a\n", `anchors and aliases are not supported`},
		{"nested: &x {id: a}\n", `anchors and aliases are not supported`},
		{"nested:\n  <<: {id: a}\n", `expected a plain key`},
		{"name: !!str 3\n", `tags and directives are not supported`},
		{"set: {1: a}\n", `expected text as a key: put 1 in quotes`},
		{"words: " + strings.Repeat("[", 1000), `nested too deeply`},
		{strings.Repeat("- ", 100000), `the line is longer than 4096 bytes`},
	} {
		var got sample
		err := decodeSample([]byte(c.src), &got)
		var fault *Error
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: got %.300v, want %s", c.src, err, c.want)
		}
	}
}

func TestOfManyFaultsTheFirstAreShownAndTheOthersCounted(t *testing.T) {
	t.Parallel()
	var got sample
	err := decodeSample([]byte("nested:\n  idd: a\nwords: ["+strings.Repeat("[], ", 60)+"b]\ncount: 7\nset: {A: [], B: b}\n"), &got)
	if err == nil || strings.Count(err.Error(), "\nf.yaml:3:") != 49 || !strings.HasSuffix(err.Error(), "\nf.yaml: faults that are not shown: 12") {
		t.Errorf("%v", err)
	}
	if got.Count != 7 || !cmp.Equal(got.Words, []string{"b"}) || got.Set["B"] != "b" {
		t.Errorf("what has no fault: %+v", got)
	}
}

func TestTheExcerptPointsAtTheFault(t *testing.T) {
	t.Parallel()
	var got sample
	err := decodeSample([]byte("name: a\nwords: [ä, 3]\n"), &got)
	want := "f.yaml:2:12: words[1]: expected text (put it in quotes), found \"3\"\n" +
		"    2 | words: [ä, 3]\n" +
		"      |            ^"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func FuzzDecodeStrict(f *testing.F) {
	f.Add([]byte("name: a\nitems: [{id: b}]\n"))
	f.Add([]byte("a: &b\n  - *b\n<<: c\n? d\n: e\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		var got sample
		err := decodeSample(src, &got)
		var fault *Error
		if err != nil && !errors.As(err, &fault) {
			t.Errorf("%T is not an *Error: %v", err, err)
		}
	})
}
