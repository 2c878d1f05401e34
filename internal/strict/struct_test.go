package strict_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/strict"
)

type call struct {
	Name  string          `json:"name"`
	Yes   *bool           `json:"yes"`
	Input json.RawMessage `json:"input"`
	Inner *call           `json:"inner"`
	List  []call          `json:"list"`
	Words []string        `json:"words"`
	Any   map[string]bool `json:"any"`
}

func TestNamesOfFieldsMatchExactly(t *testing.T) {
	t.Parallel()
	yes := true
	for text, want := range map[string]call{
		`{"name":"a","Name":"b","NAME":1}`:                                             {Name: "a"},
		`{"Name":"b","nam\u0065":"a","own":"x","":"y"}`:                                {Name: "a"},
		` {"inner": {"Yes":false, "yes" : true}, "list":[{"NAME":"b"},{"name":"c"}]} `: {Inner: &call{Yes: &yes}, List: []call{{}, {Name: "c"}}},
		`{"input":{"a":1,"A":2},"words":["x"],"any":{"a":true}}`:                       {Input: json.RawMessage(`{"a":1,"A":2}`), Words: []string{"x"}, Any: map[string]bool{"a": true}},
		`{"inner":null,"list":null,"yes":null,"name":null}`:                            {},
	} {
		var got call
		if err := strict.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
	}
}

func TestWhatIsThereTwiceIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"name":"a","name":"a"}`, `{"x":1,"x":1}`, `{"inner":{"name":"a","nam\u0065":"b"}}`, `{"list":[{},{"yes":true,"yes":null}]}`, `{"inner":{},"inner":{}}`} {
		if err := strict.Unmarshal([]byte(text), new(call)); !errors.Is(err, strict.ErrTwice) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	for _, text := range []string{``, `{`, `{} {}`, `[]`, `1`, "{\"name\":\"\xff\"}", `{"inner":1}`, `{"list":{}}`} {
		if err := strict.Unmarshal([]byte(text), new(call)); err == nil || errors.Is(err, strict.ErrTwice) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	var got call
	if err := strict.Unmarshal([]byte(`{"yes":1,"name":"a"}`), &got); err == nil || got.Name != "a" {
		t.Errorf("behind a wrong type: %+v, %v", got, err)
	}
}
