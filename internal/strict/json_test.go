package strict

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toold/toold/internal/must"
)

func TestAnObjectIsSplitWithItsDuplicates(t *testing.T) {
	t.Parallel()
	members := must.Get(Object([]byte(` {"a" : [1, {"b":"]"}] ,"\u0061":"x\"}", "c":null}`), 3))(t)
	var got []string
	for _, m := range members {
		got = append(got, m.Name+" "+string(m.Quoted)+" "+string(m.Value))
	}
	want := `a "a" [1, {"b":"]"}]` + "\n" + `a "\u0061" "x\"}"` + "\n" + `c "c" null`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if _, err := Object([]byte(`{"a":1,"b":2}`), 1); err == nil {
		t.Error("two members passed for one")
	}
	if _, err := Object([]byte(`[]`), 1); err == nil {
		t.Error("an array passed for an object")
	}
}

func TestTextThatIsNotValidCanBeMeasured(t *testing.T) {
	t.Parallel()
	for text, deep := range map[string]bool{`[[[`: true, `[["[[[[`: false, `]][[`: false, `{"a\"[[[":{}}`: false} {
		if TooDeep([]byte(text), 2) != deep {
			t.Errorf("%s: too deep is not %v", text, deep)
		}
	}
}

func FuzzArray(f *testing.F) {
	f.Add([]byte(`[1,"a,]",[2,{}],{"b":[]} , null,-1.5e3]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		elements, err := Array(text, 1<<20)
		var want []json.RawMessage
		if wrong := json.Unmarshal(text, &want); wrong != nil || bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
			if err == nil {
				t.Errorf("%s was split", text)
			}
			return
		}
		if err != nil || len(elements) != len(want) {
			t.Fatalf("%s: %d elements, want %d, %v", text, len(elements), len(want), err)
		}
		for i := range want {
			if !bytes.Equal(bytes.TrimSpace(elements[i]), want[i]) {
				t.Errorf("%s: element %d is %s, want %s", text, i, elements[i], want[i])
			}
		}
	})
}

func FuzzValid(f *testing.F) {
	for _, text := range []string{
		` {"a" : [1,-0.5e+3,{}, []] , "\u00e9é" : "\"\\\n", "b":true,"c":null,"d":false}`, `{"a":1,}`, `[1 2]`, `01`, `-`, `1.`, `1e`, `"\x"`, `"\ud83d\ude00"`, `"\ud83d"`,
		"\"\xff\"", "\"a\x1fb\"", `"unterminated`, `[[[]]]`, `nul`, `{"a"}`, `{1:2}`, ` `, `"12345678\"12345678"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		valid := Valid(text, 2)
		if want := utf8.Valid(text) && !TooDeep(text, 2) && json.Valid(text); valid != want {
			t.Fatalf("%q: valid is %v, want %v", text, valid, want)
		}
		if !valid {
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil || compact.String() != string(Compact(nil, text)) {
			t.Errorf("%q: compact is %q, want %q", text, Compact(nil, text), compact.Bytes())
		}
		var want string
		if text = bytes.TrimSpace(text); text[0] == '"' {
			if err := json.Unmarshal(text, &want); err != nil || Text(text) != want {
				t.Errorf("%q: the text is %q, want %q", text, Text(text), want)
			}
		}
	})
}
