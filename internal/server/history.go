package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toold/toold/message"
)

// historyBytes bounds what one answer in Letta's shapes holds.
const historyBytes = 16 << 20

// problem is an error as Letta's API tells it.
type problem struct {
	Detail string `json:"detail"`
}

// serveHistory lists the messages of an agent, a conversation or a run as Letta's API
// does: an array, cut by cursors that are ids of messages.
func serveHistory(of, order string) func(*Server, http.ResponseWriter, *http.Request, Token) {
	return func(s *Server, w http.ResponseWriter, r *http.Request, who Token) {
		m, e := historyQuery(r.URL.Query(), of, r.PathValue("id"), order)
		if e != nil {
			writeJSON(w, http.StatusUnprocessableEntity, problem{e.Message})
			return
		}
		list, e := s.history(r, who, m)
		if e != nil {
			writeJSON(w, statusOfError(e), problem{e.Message})
			return
		}
		writeJSON(w, http.StatusOK, list)
	}
}

func (s *Server) history(r *http.Request, who Token, m *message.ListMessages) (list []json.RawMessage, e *message.Error) {
	list = []json.RawMessage{}
	for size, left := 0, m.Limit; ; {
		m.Limit = left
		page, e := s.list(r.Context(), (&session{who: who}).client(), m)
		if e != nil {
			return nil, e
		}
		for _, listed := range page.Messages {
			list = append(list, message.Record(listed).History())
			size += len(listed)
		}
		left -= len(page.Messages)
		if !page.HasMore || left <= 0 || size > historyBytes {
			return list, nil
		}
		if m.Order == "asc" {
			m.After = page.NextAfter
		} else {
			m.Before = page.NextBefore
		}
	}
}

// historyQuery makes a list_messages of the parameters of Letta's API. Those that are about
// messages which toold does not record are taken and mean nothing.
func historyQuery(q url.Values, of, id, order string) (*message.ListMessages, *message.Error) {
	fields := url.Values{"order": {order}, "limit": {"100"}}
	for name, values := range q {
		switch value := values[0]; {
		case slices.Contains([]string{"include_err", "use_assistant_message", "assistant_message_tool_name", "assistant_message_tool_kwarg"}, name), value == "":
		case name == "include_return_message_types":
			fields["message_types"] = []string{strings.Join(values, ",")}
		case name == "conversation_id" && value == "default":
		case slices.Contains([]string{"before", "after", "limit", "order", "group_id", "conversation_id", "agent_id"}, name):
			fields[name] = values
		default:
			return nil, message.InvalidArguments.Errorf("%.80q is no parameter of this list", name)
		}
	}
	if of != "conversation_id" || id != "default" {
		fields[of] = []string{id}
	}
	return listFromQuery(fields)
}
