package letta

import "encoding/json"

type runtime struct {
	Agent        string `json:"agent_id"`
	Conversation string `json:"conversation_id"`
}

type frame struct {
	Type      string  `json:"type"`
	RequestID string  `json:"request_id"`
	Runtime   runtime `json:"runtime"`

	Success *bool  `json:"success"` // responses
	Error   string `json:"error"`

	Protocol     int             `json:"protocol_version"` // app_server_info_response
	Capabilities map[string]bool `json:"capabilities"`
	Version      string          `json:"letta_code_version"`

	Agents []named `json:"agents"` // agent_list_response

	CallID   string          `json:"tool_call_id"` // external_tool_call_request
	ToolName string          `json:"tool_name"`
	Input    json.RawMessage `json:"input"`

	Request      permission `json:"request"` // control_request
	Agent        string     `json:"agent_id"`
	Conversation string     `json:"conversation_id"`

	Accepted *bool `json:"accepted"` // input_accepted

	Device *device `json:"device_status"` // update_device_status
	Loop   *loop   `json:"loop_status"`   // update_loop_status
}

type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type permission struct {
	Subtype  string          `json:"subtype"`
	ToolName string          `json:"tool_name"`
	Input    json.RawMessage `json:"input"`
	CallID   string          `json:"tool_call_id"`
}

type device struct {
	Mode    string `json:"current_permission_mode"`
	Dir     string `json:"current_working_directory"`
	BootDir string `json:"boot_working_directory"`
	Pending []struct {
		RequestID string `json:"request_id"`
	} `json:"pending_control_requests"`
}

type loop struct {
	Status    string   `json:"status"`
	Executing []string `json:"executing_tool_call_ids"`
}

type fields map[string]any
