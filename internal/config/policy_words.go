package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/internal/spell"
	"github.com/toold/toold/policy"
)

func oneOf(what string, text []byte, words []string) error {
	if slices.Contains(words, string(text)) {
		return nil
	}
	expected := either(words)
	if near := spell.Nearest(string(text), words); near != "" && len(words) > 1 {
		return fmt.Errorf("unknown %s %q: did you mean %s? Expected %s", what, text, near, expected)
	}
	return fmt.Errorf("unknown %s %q: expected %s", what, text, expected)
}

// either joins words as "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

type choice struct {
	At     position
	set    bool
	action policy.Action
}

func (choice) words() []string { return []string{"allow", "ask", "deny"} }

func (c *choice) UnmarshalText(text []byte) (err error) {
	if err = oneOf("decision", text, c.words()); err == nil {
		c.set = true
		c.action, err = policy.ParseAction(string(text))
	}
	return err
}

type askOrDeny choice

func (askOrDeny) words() []string { return []string{"ask", "deny"} }

func (w *askOrDeny) UnmarshalText(text []byte) error {
	if string(text) == "allow" {
		return fmt.Errorf("what cannot be analysed is never allowed: expected ask or deny")
	}
	return (*choice)(w).UnmarshalText(text)
}

type version int

func (v *version) UnmarshalText(text []byte) error {
	if string(text) != "1" {
		return fmt.Errorf("unknown version %q: this program reads version 1", text)
	}
	*v = 1
	return nil
}

const (
	caseAuto        = "auto"
	caseInsensitive = "insensitive"
)

type approvalTimeout time.Duration

// Limits of approval.timeout, as in the table of settings.
const (
	minApprovalTimeout = time.Second / 10
	maxApprovalTimeout = 24 * time.Hour
)

func (a *approvalTimeout) UnmarshalText(text []byte) error {
	period, err := time.ParseDuration(string(text))
	if err != nil || period < minApprovalTimeout || period > maxApprovalTimeout {
		return fmt.Errorf("%q is no time to answer in: expected a duration from %v to %v, such as 120s", text, minApprovalTimeout, maxApprovalTimeout)
	}
	*a = approvalTimeout(period)
	return nil
}

type onTimeout string

func (onTimeout) words() []string { return []string{"deny"} }

func (o *onTimeout) UnmarshalText(text []byte) error {
	if *o = onTimeout(text); *o != "deny" {
		return fmt.Errorf("cannot be %q: what nobody answers is denied", text)
	}
	return nil
}

// unsupported is the type of keys of other versions. If they were ignored, the file would allow more.
type unsupported struct{}

func linesOf(src []byte) []string { return strings.Split(string(src), "\n") }

// PolicySchema returns the JSON Schema (draft 2020-12) of policy files, for editors. It does not check patterns or
// combinations of keys. Enumerations are from methods named words and from oneof tags, whose first word is for
// messages.
func PolicySchema() ([]byte, error) {
	schema := schemaOf(reflect.TypeFor[policyFile]())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "toold policy"
	schema["required"] = []string{"version"}
	return json.MarshalIndent(schema, "", "  ")
}

func schemaOf(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[version]():
		return map[string]any{"const": 1}
	case reflect.TypeFor[approvalTimeout]():
		return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`}
	}
	if w, ok := reflect.Zero(t).Interface().(interface{ words() []string }); ok {
		return map[string]any{"enum": w.words()}
	}
	switch t.Kind() {
	case reflect.Struct:
		return schemaOfObject(t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	default:
		return map[string]any{"type": "string"}
	}
}

func schemaOfObject(t reflect.Type) map[string]any {
	properties := make(map[string]any)
	required := []string{}
	for _, f := range reflect.VisibleFields(t) {
		key := f.Tag.Get("yaml")
		if key == "" || f.Type == reflect.TypeFor[unsupported]() {
			continue
		}
		property := schemaOf(f.Type)
		if words := strings.Fields(f.Tag.Get("oneof")); len(words) > 0 {
			property = map[string]any{"enum": words[1:]}
			if f.Type.Kind() == reflect.Slice {
				property = map[string]any{"type": "array", "items": property}
			}
		}
		if f.Tag.Get("empty") == "no" {
			property["minItems"] = 1
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			property["description"] = doc
		}
		properties[key] = property
		if key == "id" || key == "decision" || key == "policy" {
			required = append(required, key)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}
