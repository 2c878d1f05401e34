//go:build linux

package conformance

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/toold/toold/conformance/suite"
)

// wireCase is one line of a case file.
type wireCase struct {
	ID       string      `json:"id"`
	Dialect  string      `json:"dialect"`
	Why      string      `json:"why"`
	Setup    setup       `json:"setup"`
	Send     []step      `json:"send"`
	Expect   expectation `json:"expect"`
	MustFail string      `json:"must_fail"` // only in false.jsonl: the reason with which the case fails
}

// setup is what is prepared before the first step.
type setup struct {
	Policy       json.RawMessage            `json:"policy"`
	Default      string                     `json:"default"`
	Files        map[string]json.RawMessage `json:"files"`
	Auth         string                     `json:"auth"` // "token": HTTP steps carry only what they name
	Limits       map[string]json.RawMessage `json:"limits"`
	AskTimeoutMS int                        `json:"ask_timeout_ms"`
	Roles        map[string][]string        `json:"roles"` // of each connection; default: agent
	Profile      string                     `json:"profile"`
	Redact       []string                   `json:"redact"`
	Fixture      string                     `json:"fixture"`
}

// step is one action of a client. One field beside Conn is set, except that Fragments goes with JSON.
type step struct {
	Conn         string             `json:"conn"`           // default "a"
	JSON         json.RawMessage    `json:"json"`           // a text frame
	Fragments    int                `json:"fragments"`      // … in so many WebSocket fragments
	Text         *string            `json:"text"`           // a text frame, not JSON
	BinaryB64    *string            `json:"binary_b64"`     // a binary frame
	BytesB64Text *string            `json:"bytes_b64_text"` // any bytes in a text frame
	Gen          *generator         `json:"gen"`
	HTTPUpgrade  *map[string]string `json:"http_upgrade"` // a handshake with these headers
	HTTPGet      *string            `json:"http_get"`
	HTTPPost     *httpPost          `json:"http_post"` // the answers under /v1/ count as frames of the connection http

	Await           matcher         `json:"await"`
	AwaitAllReturns int             `json:"await_all_returns"`
	WaitMS          json.RawMessage `json:"wait_ms"` // a number, or "3x ping interval"

	Disconnect    bool   `json:"disconnect"`
	Reconnect     bool   `json:"reconnect"`
	PauseReading  bool   `json:"pause_reading"`
	ResumeReading bool   `json:"resume_reading"`
	FreezeSocket  bool   `json:"freeze_socket"` // see conn.freeze
	KillDaemon    string `json:"kill_daemon"`   // a signal
	StartDaemon   bool   `json:"start_daemon"`

	// Of a server to which toold connects:
	Accept         bool            `json:"accept"`    // it takes connections again
	SSE            json.RawMessage `json:"sse"`       // a message of the stream
	SSEEvent       string          `json:"sse_event"` // … with the name of an event
	Data           json.RawMessage `json:"data"`      // … and this
	SSEDone        bool            `json:"sse_done"`
	SSEClose       bool            `json:"sse_close"` // the stream ends without [DONE]
	SSECut         bool            `json:"sse_cut"`   // its connection is lost
	FailNextPost   string          `json:"fail_next_post"`
	NextPostStatus int             `json:"next_post_status"`
	Body           json.RawMessage `json:"body"`          // … of that answer
	ExpectResume   json.RawMessage `json:"expect_resume"` // toold asks for the rest behind this seq_id; true: behind any
}

// httpPost is a request with a body.
type httpPost struct {
	Path string          `json:"path"`
	JSON json.RawMessage `json:"json"`
}

// generator makes frames that are too large for a case file.
type generator struct {
	Repeat string          `json:"repeat"`
	Bytes  int             `json:"bytes"`
	Wrap   json.RawMessage `json:"wrap"` // holds "$GEN"

	Nest                        int `json:"nest"`
	Open, Close, Prefix, Suffix string

	Frames int    `json:"frames"`
	Text   string `json:"text"`
}

// expectation is what is checked after the last step. Absent parts are not.
type expectation struct {
	Frames     []matcher      `json:"frames"` // each must match a frame of its own
	Ordered    bool           `json:"ordered"`
	None       []matcher      `json:"none"`   // must match no frame
	Post       []matcher      `json:"post"`   // of the bodies that toold posts, in this order; ids: the calls that one answers
	AnyOf      []expectation  `json:"any_of"` // alternatives, one of which must match as well
	Exec       *int           `json:"exec"`   // how many calls ran
	FS         map[string]any `json:"fs"`     // content, "absent" or {"size": n}
	Journal    matcher        `json:"journal"`
	Conn       any            `json:"conn"`        // "open" or {"close": code}
	HTTPStatus any            `json:"http_status"` // of every HTTP step, or a list with one for each
	MaxMS      int            `json:"max_ms"`
	Invariants []string       `json:"invariants"` // see invariants
}

// caseLine is a line of a case file. A case that cannot be read fails.
type caseLine struct {
	place string // file:line
	id    string
	c     wireCase
	err   error
}

func readCases(paths ...string) ([]caseLine, error) { return suite.ReadLines(readCase, paths) }

// readCase reads one case. Unknown fields are errors, except in a case that is not applicable: a case that is half
// understood would pass for the wrong reason.
func readCase(place string, text []byte) caseLine {
	l := caseLine{place: place, id: place}
	var head struct{ ID, Dialect string }
	if l.err = json.Unmarshal(text, &head); l.err != nil {
		return l
	}
	if head.ID != "" {
		l.id = head.ID
	}
	l.c.ID, l.c.Dialect = head.ID, head.Dialect
	if notApplicable(l.c) != "" {
		return l
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	l.err = d.Decode(&l.c)
	return l
}

// notApplicable returns why this version cannot play a case, "" if it can.
func notApplicable(c wireCase) string {
	if c.ID == "as-01-register" {
		return "toold offers more than the four tools of the case; own-130 has the rest of it"
	}
	return ""
}

// isDialect reports whether the runner knows the dialect of a case.
func isDialect(dialect string) bool {
	const all = " openletta letta_api letta_delta openai anthropic http approval journal stream transport "
	if isPeer(dialect) {
		return true
	}
	return dialect != "" && !strings.Contains(dialect, " ") && strings.Contains(all, " "+dialect+" ")
}
