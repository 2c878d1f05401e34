package config

import (
	"encoding/json"
	"reflect"
	"strings"
)

// PolicySchema returns the JSON Schema (draft 2020-12) of policy files, for editors.
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
	case reflect.TypeFor[askTime]():
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
		if key == "" || f.Type == reflect.TypeFor[later]() {
			continue
		}
		property := schemaOf(f.Type)
		if words := strings.Fields(f.Tag.Get("oneof")); len(words) > 0 {
			property = map[string]any{"enum": words[1:]}
			if f.Type.Kind() == reflect.Slice {
				property = map[string]any{"type": "array", "items": property}
			}
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
