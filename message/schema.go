package message

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON Schema (draft 2020-12) of all frames: client_frame and daemon_frame, which list a definition
// per frame, all in $defs.
func Schema() ([]byte, error) {
	root := &jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema",
		Title:  "toold wire protocol, version 1",
		AnyOf:  []*jsonschema.Schema{reference("client_frame"), reference("daemon_frame")},
		Defs:   map[string]*jsonschema.Schema{},
	}
	clients, err := define(root, "client", clientFrames(), openClient)
	if err != nil {
		return nil, err
	}
	root.Defs["client.passive"] = passiveSchema()
	clients.AnyOf = append(clients.AnyOf, reference("client.passive"))
	if _, err := define(root, "daemon", daemonFrames(), openDaemon); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot encode the schema: %v", err)
	}
	return append(text, '\n'), nil
}

// SchemaOf returns the JSON Schema of T as toold sends it.
func SchemaOf[T any]() (*jsonschema.Schema, error) {
	types, err := ownSchemas()
	if err != nil {
		return nil, err
	}
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return nil, fmt.Errorf("cannot describe %T: %v", *new(T), err)
	}
	refine(s, reflect.TypeFor[T]())
	walk(s, openDaemon)
	return s, nil
}

func daemonFrames() []frameType {
	return []frameType{
		sent[ToolReturn]("message_type", "tool_return_message"),
		sent[chatReturn]("role", "tool"),
		sent[shellOutput]("type", "shell_call_output"),
		sent[localShellOutput]("type", "local_shell_call_output"),
		sent[patchOutput]("type", "apply_patch_call_output"),
		sent[toolResult]("type", "tool_result"),
		sent[HelloAck]("message_type", "hello_ack"),
		sent[ApprovalRequest]("message_type", "approval_request_message"),
		sent[ApprovalResolved]("message_type", "approval_resolved"),
		sent[PolicyDecision]("message_type", "policy_decision"),
		sent[ConnectionDecision]("message_type", "connection_decision"),
		sent[ToolStarted]("message_type", "tool_started"),
		sent[WaitingForInput]("message_type", "waiting_for_input"),
		sent[inputTaken]("message_type", "input_taken"),
		sent[OutputDelta]("message_type", "tool_output_delta"),
		sent[ToolQueued]("message_type", "tool_queued"),
		sent[BackgroundEnded]("message_type", "background_ended"),
		sent[accepted]("message_type", "accepted"),
		sent[calls]("message_type", "calls"),
		sent[Messages]("message_type", "messages"),
		sent[Output]("message_type", "output"),
		sent[approvals]("message_type", "approvals"),
		sent[PolicyExplanation]("message_type", "policy_explanation"),
		sent[subscribed]("message_type", "subscribed"),
		sent[unsubscribed]("message_type", "unsubscribed"),
		sent[SubscriptionEvent]("message_type", "subscription_event"),
		sent[SubscriptionGap]("message_type", "subscription_gap"),
		sent[pong]("message_type", "pong"),
		sent[Error]("message_type", "error_message"),
	}
}

func sent[T any](key, value string) frameType {
	return frameType{key: key, value: value, typ: reflect.TypeFor[T]()}
}

func define(root *jsonschema.Schema, side string, frames []frameType, open func(*jsonschema.Schema)) (*jsonschema.Schema, error) {
	types, err := ownSchemas()
	if err != nil {
		return nil, err
	}
	union := &jsonschema.Schema{}
	for _, f := range frames {
		s, err := jsonschema.ForType(f.typ, &jsonschema.ForOptions{TypeSchemas: types})
		if err != nil {
			return nil, fmt.Errorf("cannot describe %s: %v", f.value, err)
		}
		refine(s, f.typ)
		walk(s, open)
		s.Properties[f.key].Const = new(any(f.value))
		name := side + "." + f.value
		root.Defs[name] = s
		union.AnyOf = append(union.AnyOf, reference(name))
	}
	root.Defs[side+"_frame"] = union
	return union, nil
}

func reference(name string) *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/" + name} }

// ownSchemas returns schemas for types whose JSON differs from their Go fields.
func ownSchemas() (map[reflect.Type]*jsonschema.Schema, error) {
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[ErrorType]():       {Type: "string", Enum: enum(errorTypes())},
	}
	call, err := jsonschema.For[wireCall](&jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return nil, fmt.Errorf("cannot describe a call: %v", err)
	}
	refine(call, reflect.TypeFor[wireCall]())
	types[reflect.TypeFor[wireCalls]()] = &jsonschema.Schema{
		AnyOf: []*jsonschema.Schema{{Type: "array", Items: call}, call.CloneSchemas()},
	}
	return types, nil
}

func enum[T ~string](values []T) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// refine adds constraints that are in the tags of fields: lengths of identifiers, and enumerated values.
func refine(s *jsonschema.Schema, t reflect.Type) {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		if t.Kind() == reflect.Slice {
			s = s.Items
		}
		refine(s, t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			values := field.Tag.Get("enum")
			switch child := s.Properties[name]; {
			case field.Anonymous:
				refine(s, field.Type)
			case child == nil:
			case values != "":
				child.Enum = enum(strings.Split(values, ","))
			case field.Tag.Get("wire") != "id":
				refine(child, field.Type)
			case child.Items != nil:
				child.Items.MaxLength = new(MaxID)
			default:
				child.MaxLength = new(MaxID)
			}
		}
	}
}

func passiveSchema() *jsonschema.Schema {
	by := func(key string, values []string) *jsonschema.Schema {
		return &jsonschema.Schema{
			Type: "object", Required: []string{key},
			Properties: map[string]*jsonschema.Schema{key: {Type: "string", Enum: enum(values)}},
		}
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{by("message_type", passiveTypes()), by("role", passiveRoles())}}
}

// walk calls f for the schemas of properties, elements and variants, and then for s.
func walk(s *jsonschema.Schema, f func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	walk(s.Items, f)
	for _, child := range s.Properties {
		walk(child, f)
	}
	for _, child := range s.AnyOf {
		walk(child, f)
	}
	f(s)
}

// openClient makes a schema as tolerant as Decoder, which ignores unknown members and nulls.
func openClient(s *jsonschema.Schema) {
	openDaemon(s)
	for name, property := range s.Properties {
		if slices.Contains(s.Required, name) {
			continue
		}
		switch {
		case property.Type != "":
			property.Types, property.Type = []string{property.Type, "null"}, ""
		case property.AnyOf != nil:
			property.AnyOf = append(property.AnyOf, &jsonschema.Schema{Type: "null"})
		}
	}
}

// openDaemon allows unknown members and excludes null for arrays.
func openDaemon(s *jsonschema.Schema) {
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	if slices.Contains(s.Types, "array") {
		s.Types, s.Type = nil, "array"
	}
	if slices.Contains(s.Types, "null") && s.Enum != nil {
		s.Enum = append(s.Enum, nil)
	}
}
