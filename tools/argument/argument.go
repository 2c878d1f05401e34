// Package argument decodes the arguments of a call. Decode and Object accept only JSON that all parsers understand
// alike. Each fault is an *Error, whose text helps a model to correct its call. The package has no effects. It limits
// the depth of nesting and the names that errors quote, but not the size of the text.
package argument

import (
	"encoding/json"
	"fmt"
)

// Error is a fault in the arguments of a call.
type Error struct {
	Field   string // "": the whole object
	Problem string // for the model
}

func (e *Error) Error() string {
	if e.Field == "" {
		return "invalid arguments: " + e.Problem
	}
	return fmt.Sprintf("invalid argument %q: %s", e.Field, e.Problem)
}

// Ignored has arguments that every tool accepts and ignores.
type Ignored struct {
	Description   json.RawMessage `json:"description" ignored:"true"`
	Justification json.RawMessage `json:"justification" ignored:"true"`
}

// Schema returns the JSON Schema of an object. properties is a format for values; required is a list of quoted names.
func Schema(required, properties string, values ...any) json.RawMessage {
	properties = fmt.Sprintf(properties, values...)
	return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`)
}
