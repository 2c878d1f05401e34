package argument

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
)

type sample struct {
	Command     string          `json:"command" alias:"cmd,script" required:"true"`
	Timeout     *int64          `json:"timeout" alias:"timeout_ms"`
	Count       int64           `json:"count"`
	All         bool            `json:"replace_all"`
	Terminal    *string         `json:"terminal" enum:"split|single|off"`
	Description json.RawMessage `json:"description" ignored:"true"`
}

func ptr[T any](v T) *T { return &v }

func TestDecodeAcceptsWhatIsClear(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want sample
	}{
		"plain":               {`{"command":"ls","timeout":5,"count":-3,"replace_all":true,"terminal":"off"}`, sample{Command: "ls", Timeout: ptr[int64](5), Count: -3, All: true, Terminal: ptr("off")}},
		"white space around":  {" \n{ \"command\" : \"ls\" }\t\r\n", sample{Command: "ls"}},
		"alias":               {`{"cmd":"ls","timeout_ms":7}`, sample{Command: "ls", Timeout: ptr[int64](7)}},
		"equal aliases":       {`{"cmd":"l\u0073","command":"ls"}`, sample{Command: "ls"}},
		"escaped key":         {`{"c\u006fmmand":"ls"}`, sample{Command: "ls"}},
		"null is not given":   {`{"command":"ls","timeout":null,"count":null}`, sample{Command: "ls"}},
		"empty is a value":    {`{"command":""}`, sample{}},
		"ignored of any type": {`{"command":"ls","description":{"why":[1,2]}}`, sample{Command: "ls", Description: json.RawMessage(`{"why":[1,2]}`)}},
		"surrogate pair":      {`{"command":"\ud83d\ude00"}`, sample{Command: "😀"}},
		"escaped backslash u": {`{"command":"\\ud800 \\u0000"}`, sample{Command: `\ud800 \u0000`}},
		"braces in a string":  {`{"command":"{\"a\":{}}{\"b\":1}"}`, sample{Command: `{"a":{}}{"b":1}`}},
		"largest integer":     {`{"command":"ls","count":9223372036854775807}`, sample{Command: "ls", Count: 1<<63 - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := must.Get(Decode[sample](json.RawMessage(tc.text)))(t)
			must.Match(t, tc.want, got)
		})
	}
}

func TestDecodeRefusesWhatTwoReadersCouldTakeDifferently(t *testing.T) {
	t.Parallel()
	deep := `{"command":"x","description":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`
	for name, tc := range map[string]struct{ text, field, problem string }{
		"empty text":             {``, "", "empty"},
		"blank text":             {" \n", "", "empty"},
		"null":                   {`null`, "", "got null"},
		"array":                  {`["ls"]`, "", "got an array"},
		"scalar":                 {`"ls"`, "", "got a string"},
		"cut off":                {`{"command":`, "", "not valid JSON"},
		"trailing data":          {`{"command":"ls"} trailing`, "", "not valid JSON"},
		"two objects":            {`{"command":"ls"}{"command":"true"}`, "", "not valid JSON"},
		"comment":                {`{"command":"ls"/**/}`, "", "not valid JSON"},
		"trailing comma":         {`{"command":"ls",}`, "", "not valid JSON"},
		"NaN":                    {`{"command":"ls","count":NaN}`, "", "not valid JSON"},
		"raw newline in string":  {"{\"command\":\"a\nb\"}", "", "not valid JSON"},
		"repeated key":           {`{"command":"true","command":"rm"}`, "command", "more than once"},
		"repeated after escapes": {`{"command":"true","\u0063ommand":"rm"}`, "command", "more than once"},
		"case variant":           {`{"command":"true","Command":"rm"}`, "Command", `did you mean "command"`},
		"case variant of alias":  {`{"CMD":"rm"}`, "CMD", `did you mean "cmd"`},
		"unknown, near":          {`{"command":"ls","timeot":5}`, "timeot", `did you mean "timeout"`},
		"unknown, far":           {`{"command":"ls","dry_run":true}`, "dry_run", "arguments are command, timeout"},
		"missing":                {`{"timeout":5}`, "command", "missing"},
		"required null":          {`{"command":null}`, "command", "expected a string, got null"},
		"array for string":       {`{"command":["ls"]}`, "command", "expected a string, got an array"},
		"number for string":      {`{"command":5}`, "command", "got a number"},
		"string for integer":     {`{"command":"ls","timeout":"5"}`, "timeout", "expected an integer, got a string"},
		"string for boolean":     {`{"command":"ls","replace_all":"true"}`, "replace_all", "expected true or false"},
		"fraction":               {`{"command":"ls","timeout":1.5}`, "timeout", "not an integer"},
		"fraction of nothing":    {`{"command":"ls","timeout":1.0}`, "timeout", "not an integer"},
		"exponent":               {`{"command":"ls","timeout":1e2}`, "timeout", "not an integer"},
		"infinite":               {`{"command":"ls","timeout":1e999}`, "timeout", "not an integer"},
		"overflow":               {`{"command":"ls","timeout":9223372036854775808}`, "timeout", "too large"},
		"NUL":                    {`{"command":"a\u0000b"}`, "command", "NUL"},
		"lone high surrogate":    {`{"command":"\ud800"}`, "command", "surrogate"},
		"lone low surrogate":     {`{"command":"\udc00"}`, "command", "surrogate"},
		"high before a letter":   {`{"command":"\ud800\u0041"}`, "command", "surrogate"},
		"surrogate in a key":     {`{"command":"ls","\ud800":1}`, "\ufffd", "surrogate"},
		"invalid UTF-8":          {"{\"command\":\"\xff\"}", "", "UTF-8"},
		"aliases at odds":        {`{"command":"true","cmd":"rm"}`, "cmd", `contradicts "command"`},
		"not in enum":            {`{"command":"ls","terminal":"none"}`, "terminal", "split, single, off"},
		"too deep":               {deep, "", "deeper than 64"},
		"far too deep":           {strings.Repeat("[", 1<<20), "", "deeper than 64"},
		"huge unknown key":       {`{"` + strings.Repeat("k", 1<<20) + `":1}`, strings.Repeat("k", 64) + "…", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Decode[sample](json.RawMessage(tc.text))
			var fault *Error
			if !errors.As(err, &fault) {
				t.Fatalf("got %+v, error %v; want an *Error", got, err)
			}
			if fault.Field != tc.field || !strings.Contains(fault.Problem, tc.problem) {
				t.Errorf("got field %q, problem %q; want %q, …%s…", fault.Field, fault.Problem, tc.field, tc.problem)
			}
			if !reflect.DeepEqual(got, sample{}) {
				t.Errorf("value %+v beside an error", got)
			}
		})
	}
}

func TestHashSeesMeaningNotSpelling(t *testing.T) {
	t.Parallel()
	same := []string{
		`{"command":"ls","timeout":5,"description":{"a":1,"b":[2]}}`,
		` { "timeout" : 5, "description":{"b":[2],"a":1}, "c\u006fmmand" : "l\u0073" } `,
	}
	other := []string{
		`{"command":"ls","timeout":5.0,"description":{"a":1,"b":[2]}}`,
		`{"command":"ls","timeout":5,"description":{"a":1,"b":["2"]}}`,
		`{"command":"ls","timeout":5,"description":{"a":1,"a":1,"b":[2]}}`,
		`{"command":"ls","timeout":5}`,
		`{"command":"ls","timeout":5`,
		`{"command":"ls","timeout":5 `,
		`{"command":"ls","command":"ls"}`,
		`{"command":"\ufffd"}`,
		`{"command":"\ud800"}`,
		``,
	}
	want := Hash("bash", json.RawMessage(same[0]))
	if got := Hash("bash", json.RawMessage(same[1])); got != want {
		t.Errorf("spelling changed the hash")
	}
	seen := map[string]string{want: same[0], Hash("read_file", json.RawMessage(same[0])): "other tool"}
	if len(seen) != 2 {
		t.Error("the tool does not count")
	}
	for _, text := range other {
		h := Hash("bash", json.RawMessage(text))
		if seen[h] != "" {
			t.Errorf("%s hashes as %s", text, seen[h])
		}
		seen[h] = text
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"command":"ls","timeout":5,"replace_all":true,"terminal":"off","description":[{}]}`))
	f.Add([]byte(`{"cmd":"\ud83d\ude00","count":-0}`))
	f.Add([]byte(`{"command":"true","command":"x"}`))
	f.Add([]byte(`{"command":"\ud800\\\u0000"}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		Hash("bash", text)
		got, err := Decode[sample](text)
		if err != nil {
			var fault *Error
			if !errors.As(err, &fault) {
				t.Fatalf("%q: %v is no *Error", text, err)
			}
			return
		}
		var want struct {
			sample
			Cmd, Script *string
			TimeoutMS   *int64 `json:"timeout_ms"`
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%q accepted, but encoding/json says %v", text, err)
		}
		for _, alias := range []*string{want.Cmd, want.Script} {
			if alias != nil {
				want.Command = *alias
			}
		}
		if want.TimeoutMS != nil {
			want.Timeout = want.TimeoutMS
		}
		got.Description, want.Description = nil, nil
		if diff := cmp.Diff(want.sample, got); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
	})
}

func BenchmarkDecode8MiB(b *testing.B) {
	text := must.Get(json.Marshal(map[string]string{"command": strings.Repeat("line of text\n", 8<<20/13)}))(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		must.Get(Decode[sample](text))(b)
	}
}

func BenchmarkHash8MiB(b *testing.B) {
	text := must.Get(json.Marshal(map[string]string{"command": strings.Repeat("line of text\n", 8<<20/13)}))(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Hash("bash", text)
	}
}
