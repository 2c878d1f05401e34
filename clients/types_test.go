//go:build unix

package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/message"
)

// compiles checks with the compiler that the example keeps to the types, and that what the
// schema allows is of these types.
func compiles(t *testing.T, dir, tsc string) {
	t.Helper()
	const lines = `import type { ToolReturn, ErrorMessage } from "toold-client";
export const returned = (frame: SchemaReturn): ToolReturn => frame;
export const failed = (frame: SchemaError): ErrorMessage => frame;
`
	defs := definitions(t)
	text := lines + "type SchemaReturn = " + defs["daemon.tool_return_message"].typescript() + ";\ntype SchemaError = " + defs["daemon.error_message"].typescript() + ";\n"
	if err := os.WriteFile(filepath.Join(dir, "schema.ts"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	globals := filepath.Join(dir, "globals.d.ts")
	if err := os.WriteFile(globals, []byte("declare const process: { argv: string[] };\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, dir, tsc, "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "globals.d.ts", "client.ts", "schema.ts")
}

// schema is a JSON Schema, as far as those of the frames use it.
type schema struct {
	Type       any // a string or several
	Const      any
	Enum       []any
	AnyOf      []schema
	Items      *schema
	Properties map[string]schema
	Required   []string
}

// UnmarshalJSON also takes true, the schema of everything.
func (s *schema) UnmarshalJSON(text []byte) error {
	type plain schema
	if string(text) == "true" {
		return nil
	}
	return json.Unmarshal(text, (*plain)(s))
}

// typescript is the type of what a schema allows.
func (s schema) typescript() string {
	var union []string
	literal := func(v any) {
		text, _ := json.Marshal(v)
		union = append(union, string(text))
	}
	types, several := s.Type.([]any)
	if !several && s.Type != nil {
		types = []any{s.Type}
	}
	switch {
	case s.Const != nil:
		literal(s.Const)
		types = nil
	case s.Enum != nil:
		for _, v := range s.Enum {
			literal(v)
		}
		types = nil
	}
	for _, one := range s.AnyOf {
		union = append(union, one.typescript())
	}
	for _, typ := range types {
		switch typ {
		case "integer":
			typ = "number"
		case "array":
			typ = "(" + s.Items.typescript() + ")[]"
		case "object":
			typ = s.object()
		}
		union = append(union, typ.(string))
	}
	if union == nil {
		return "unknown"
	}
	return strings.Join(union, " | ")
}

func (s schema) object() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		optional := "?"
		if slices.Contains(s.Required, name) {
			optional = ""
		}
		fmt.Fprintf(&b, " %q%s: %s;", name, optional, s.Properties[name].typescript())
	}
	return "{" + b.String() + " }"
}

// definitions are those of the schema.
func definitions(t *testing.T) map[string]schema {
	t.Helper()
	text, err := message.Schema()
	var all struct {
		Defs map[string]schema `json:"$defs"`
	}
	if err = errors.Join(err, json.Unmarshal(text, &all)); err != nil {
		t.Fatal(err)
	}
	return all.Defs
}

// The types for TypeScript name what the schema does.
func TestTheTypesAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	types, err := os.ReadFile("npm/index.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	defs := definitions(t)
	for name, frame := range map[string]string{"ToolReturn": "daemon.tool_return_message", "ErrorMessage": "daemon.error_message"} {
		_, body, _ := strings.Cut(string(types), "interface "+name+" {")
		body, _, _ = strings.Cut(body, "\n}")
		fields := map[string]bool{} // required or not
		for _, m := range regexp.MustCompile(`(?m)^  (\w+)(\??):`).FindAllStringSubmatch(body, -1) {
			fields[m[1]] = m[2] == ""
		}
		required := map[string]bool{}
		for _, field := range defs[frame].Required {
			required[field] = true
		}
		for field := range defs[frame].Properties {
			if is, there := fields[field]; !there || is != required[field] {
				t.Errorf("%s.%s: in the types %t and required %t; required in the schema %t", name, field, there, is, required[field])
			}
			delete(fields, field)
		}
		for field := range fields {
			t.Errorf("%s.%s is not in the schema", name, field)
		}
	}
}
