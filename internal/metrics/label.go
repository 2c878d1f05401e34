package metrics

import (
	"slices"

	"github.com/toold/toold/message"
)

// Values of labels; others become "other".
var (
	actions  = []string{"allow", "ask", "deny"}
	deciders = []string{"policy", "person", "beforehand", "remembered", "deadline"}
	denials  = []string{"file", "socket", "host", "name", "protected", "syscall", "limit"}
	failures = []string{
		string(message.DuplicateToolCall), string(message.NotFound), string(message.NotRunning), string(message.InvalidArguments), string(message.InternalError),
		string(message.UnknownTool), string(message.Denied), string(message.ApprovalTimeout), string(message.Timeout), string(message.Cancelled),
		string(message.InputNeeded), string(message.SandboxUnavailable), string(message.ProtectedPath), string(message.TooManyCalls), string(message.Shutdown),
		string(message.UnknownAfterCrash),
	}
)

func known(value string, values []string) string {
	if slices.Contains(values, value) {
		return value
	}
	return "other"
}

func outcome(ret *message.ToolReturn) string {
	if ret.ErrorType != nil {
		return known(string(*ret.ErrorType), failures)
	}
	return known(ret.Status, []string{"success", "error"})
}
