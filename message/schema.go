package message

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON Schema (draft 2020-12) of every frame, made from the
// Go types that Decoder binds and Encode writes. Under $defs, client_frame is
// any frame that toold takes and daemon_frame any that it sends; each frame has
// a definition of its own.
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

// A frameType is one frame of the wire: the field that tells it from others,
// its value there, and its Go type.
type frameType struct {
	key, value string
	typ        reflect.Type
}

func clientFrames() []frameType {
	return []frameType{
		{"message_type", "approval_request_message", reflect.TypeFor[wireRequest]()},
		{"message_type", "stop_reason", reflect.TypeFor[wireStop]()},
		{"role", "assistant", reflect.TypeFor[wireChat]()},
		{"type", "shell_call", reflect.TypeFor[wireShellCall]()},
		{"type", "local_shell_call", reflect.TypeFor[wireLocalShellCall]()},
		{"type", "apply_patch_call", reflect.TypeFor[wirePatchCall]()},
		{"type", "tool_use", reflect.TypeFor[wireToolUse]()},
		{"message_type", "approval_response_message", reflect.TypeFor[wireApproval]()},
		{"message_type", "cancel", reflect.TypeFor[wireCancel]()},
		{"message_type", "tool_input", reflect.TypeFor[wireInput]()},
		{"message_type", "list_messages", reflect.TypeFor[wireListMessages]()},
		{"message_type", "list_approvals", reflect.TypeFor[wireListApprovals]()},
		{"message_type", "list_calls", reflect.TypeFor[wireListCalls]()},
		{"message_type", "subscribe", reflect.TypeFor[wireSubscribe]()},
		{"message_type", "unsubscribe", reflect.TypeFor[wireUnsubscribe]()},
		{"message_type", "get_output", reflect.TypeFor[wireGetOutput]()},
		{"message_type", "explain_policy", reflect.TypeFor[wireExplainPolicy]()},
		{"message_type", "hello", reflect.TypeFor[wireHello]()},
		{"message_type", "ping", reflect.TypeFor[wirePing]()},
	}
}

func daemonFrames() []frameType {
	return []frameType{
		{"message_type", "tool_return_message", reflect.TypeFor[ToolReturn]()},
		{"role", "tool", reflect.TypeFor[OpenAIReturn]()},
		{"type", "shell_call_output", reflect.TypeFor[ShellOutput]()},
		{"type", "local_shell_call_output", reflect.TypeFor[LocalShellOutput]()},
		{"type", "apply_patch_call_output", reflect.TypeFor[PatchOutput]()},
		{"type", "tool_result", reflect.TypeFor[ToolResult]()},
		{"message_type", "hello_ack", reflect.TypeFor[HelloAck]()},
		{"message_type", "approval_request_message", reflect.TypeFor[ApprovalRequest]()},
		{"message_type", "approval_resolved", reflect.TypeFor[ApprovalResolved]()},
		{"message_type", "policy_decision", reflect.TypeFor[PolicyDecision]()},
		{"message_type", "connection_decision", reflect.TypeFor[ConnectionDecision]()},
		{"message_type", "tool_started", reflect.TypeFor[ToolStarted]()},
		{"message_type", "waiting_for_input", reflect.TypeFor[WaitingForInput]()},
		{"message_type", "input_taken", reflect.TypeFor[InputTaken]()},
		{"message_type", "tool_output_delta", reflect.TypeFor[OutputDelta]()},
		{"message_type", "tool_queued", reflect.TypeFor[ToolQueued]()},
		{"message_type", "background_ended", reflect.TypeFor[BackgroundEnded]()},
		{"message_type", "accepted", reflect.TypeFor[Accepted]()},
		{"message_type", "calls", reflect.TypeFor[Calls]()},
		{"message_type", "messages", reflect.TypeFor[Messages]()},
		{"message_type", "output", reflect.TypeFor[Output]()},
		{"message_type", "approvals", reflect.TypeFor[Approvals]()},
		{"message_type", "policy_explanation", reflect.TypeFor[PolicyExplanation]()},
		{"message_type", "subscribed", reflect.TypeFor[Subscribed]()},
		{"message_type", "unsubscribed", reflect.TypeFor[Unsubscribed]()},
		{"message_type", "subscription_event", reflect.TypeFor[SubscriptionEvent]()},
		{"message_type", "subscription_gap", reflect.TypeFor[SubscriptionGap]()},
		{"message_type", "pong", reflect.TypeFor[Pong]()},
		{"message_type", "error_message", reflect.TypeFor[Error]()},
	}
}

// define adds a definition for each frame and one that is any of them.
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
		walk(s, open)
		s.Properties[f.key].Const = constant(f.value)
		name := side + "." + f.value
		root.Defs[name] = s
		union.AnyOf = append(union.AnyOf, reference(name))
	}
	root.Defs[side+"_frame"] = union
	return union, nil
}

func reference(name string) *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/" + name} }

func constant(v any) *any { return &v }

// ownSchemas describes the types whose JSON is not that of their Go fields.
func ownSchemas() (map[reflect.Type]*jsonschema.Schema, error) {
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[Order]():           {Type: "string", Enum: enum(orders())},
		reflect.TypeFor[ident]():           {Type: "string", MaxLength: jsonschema.Ptr(maxIdent)},
		reflect.TypeFor[ErrorType]():       {Type: "string", Enum: enum(errorTypes())},
		reflect.TypeFor[Cause]():           {Type: "string", Enum: enum(causes())},
		reflect.TypeFor[Topic]():           {Type: "string", Enum: enum(topics())},
		reflect.TypeFor[DenialKind]():      {Type: "string", Enum: enum(denialKinds())},
	}
	call, err := jsonschema.For[wireCall](&jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return nil, fmt.Errorf("cannot describe a call: %v", err)
	}
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

// passiveSchema describes the messages that toold takes and ignores.
func passiveSchema() *jsonschema.Schema {
	by := func(key string, values []string) *jsonschema.Schema {
		return &jsonschema.Schema{
			Type: "object", Required: []string{key},
			Properties: map[string]*jsonschema.Schema{key: {Type: "string", Enum: enum(values)}},
		}
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{by("message_type", passiveTypes()), by("role", passiveRoles())}}
}

// walk calls f for the schemas of properties, elements and variants, then for
// the schema they belong to.
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

// openClient makes a schema as tolerant as Decoder: unknown members are
// ignored and null is the same as absent.
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

// openDaemon lets later versions add members, and says that no array is null.
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
