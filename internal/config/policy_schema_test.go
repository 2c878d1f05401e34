package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
)

// validator is the schema of policy files, ready for use.
func validator(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := PolicySchema()
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// plainValue is a YAML text as a schema sees it.
func plainValue(t *testing.T, src []byte) any {
	t.Helper()
	text, err := yaml.YAMLToJSON(src)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
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
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
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
	} {
		if v.Validate(plainValue(t, []byte(src))) == nil {
			t.Errorf("the schema accepts %q", src)
		}
		if _, err := parsePolicy("p.yaml", []byte(src+"\n"), 0, ""); err == nil {
			t.Errorf("the reader accepts %q", src)
		}
	}
}
