package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toold/toold/internal/must"
)

// validator is the schema of policy files, ready for use.
func validator(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text := must.Get(PolicySchema())(t)
	var schema jsonschema.Schema
	must.Do(t, json.Unmarshal(text, &schema))
	resolved := must.Get(schema.Resolve(nil))(t)
	return resolved
}

// plainValue is a YAML text as a schema sees it.
func plainValue(t *testing.T, src []byte) any {
	t.Helper()
	text := must.Get(yaml.YAMLToJSON(src))(t)
	var value any
	must.Do(t, json.Unmarshal(text, &value))
	return value
}

func TestShippedPoliciesFollowTheSchema(t *testing.T) {
	t.Parallel()
	v := validator(t)
	starters, _ := filepath.Glob("*.yaml")
	others, err := filepath.Glob("../../conformance/testdata/policies/*.yaml")
	if err != nil || len(starters) < 5 || len(others) == 0 {
		t.Fatalf("no policies were found: %v", err)
	}
	for _, path := range append(starters, others...) {
		src := must.Get(os.ReadFile(path))(t)
		if err := v.Validate(plainValue(t, src)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTheSchemaRefusesWhatTheReaderRefuses(t *testing.T) {
	t.Parallel()
	v := validator(t)
	for _, src := range []string{
		"name: no version", "version: 2", "version: 1\ncomands: []", "version: 1\ndefaults: {bash: permit}",
		"version: 1\ndefaults: {unanalysable: allow}", "version: 1\ncommands: [{id: x, run: [a]}]",
		"version: 1\ncommands: [{id: x, decision: ask, run: [a], sandbox: danger-full-access}]",
		"version: 1\nask: {timeout: soon}", "version: 1\nclients: [{match: {clint: a}, policy: b}]", "version: 1\npresets: shell-readonly",
		"version: 1\ncommands: [{id: x, decision: allow, run: [a], cwd: []}]", "version: 1\npaths: [{id: x, decision: allow, match: [/a], ops: }]",
		"version: 1\nnet: [{id: x, decision: allow, hosts: [a.b], schemes: [], ports: []}]",
	} {
		if v.Validate(plainValue(t, []byte(src))) == nil {
			t.Errorf("the schema accepts %q", src)
		}
		if _, err := parsePolicy("p.yaml", []byte(src+"\n"), 0, ""); err == nil {
			t.Errorf("the reader accepts %q", src)
		}
	}
}
