package codex

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/message"
)

// request is a JSON-RPC message, which has no member "jsonrpc". A notification has no id.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	slots  chan struct{}   // channel of slots that the answer receives from
	large  bool            // the request has a content slot, which its answer releases
	size   int64           // bytes charged until it is answered
}

type object map[string]any

type response struct {
	ID     json.RawMessage `json:"id"`
	Result any             `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
	slots  chan struct{}   // the writer receives from it after writing
	large  bool            // see request
	size   int64
}

type notification struct {
	Method string `json:"method"`
	Params any    `json:"params"`
}

const (
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
)

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func refuse(format string, args ...any) *rpcError {
	return &rpcError{codeInvalidRequest, fmt.Sprintf(format, args...)}
}

func badParams(format string, args ...any) *rpcError {
	return &rpcError{codeInvalidParams, fmt.Sprintf(format, args...)}
}

// ident is an id chosen by Codex. Its length is limited, because toold keeps it.
type ident string

// UnmarshalText rejects ids that calls must not have.
func (id *ident) UnmarshalText(text []byte) error {
	if !message.IsID(string(text)) {
		return fmt.Errorf("the id %.80q is not at most %d bytes of printable text", text, message.MaxID)
	}
	*id = ident(text)
	return nil
}

// decode decodes params into a struct, whose fields must not have omitempty. It rejects a top-level parameter that the
// struct does not have, unless it is empty, because ignoring it could change the meaning of the request.
func decode(params json.RawMessage, into any) *rpcError {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if err := json.Unmarshal(params, into); err != nil {
		return badParams("the params cannot be read: %v", err)
	}
	known, err := json.Marshal(into)
	var have, want map[string]json.RawMessage
	if err := errors.Join(err, json.Unmarshal(known, &have), json.Unmarshal(params, &want)); err != nil {
		return badParams("the params cannot be read: %v", err)
	}
	for name, value := range want {
		if _, ok := have[name]; !ok && !isEmpty(value) {
			return badParams("toold does not know the parameter %q, so nothing was done; this Codex is newer than toold", name)
		}
	}
	return nil
}

// exact is a part of params that is decoded by decode.
type exact[T any] struct{ V T }

// UnmarshalJSON returns an error where decode does.
func (x *exact[T]) UnmarshalJSON(text []byte) error {
	if e := decode(text, &x.V); e != nil {
		return errors.New(e.Message)
	}
	return nil
}

func isEmpty(value json.RawMessage) bool {
	switch string(bytes.TrimSpace(value)) {
	case "null", "false", `""`, "[]", "{}":
		return true
	}
	return false
}

func pathOf(uri string) (string, *rpcError) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", badParams("%q is no URI: %v", uri, err)
	case u.Scheme != "file" || u.Host != "" && u.Host != "localhost":
		return "", badParams("%q is no file URI of this machine", uri)
	case u.RawQuery != "" || u.Fragment != "":
		return "", badParams("%q has more than a path", uri)
	case !filepath.IsAbs(u.Path) || strings.ContainsRune(u.Path, 0):
		return "", badParams("%q has no absolute path", uri)
	case !utf8.ValidString(u.Path): // encoding as JSON would change the name
		return "", badParams("%q is not in UTF-8, and toold reaches only such names; use the shell", uri)
	}
	return u.Path, nil
}

func uriOf(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

type initializeParams struct {
	ClientName      string `json:"clientName"`
	ResumeSessionID string `json:"resumeSessionId"`
}

type startParams struct {
	ProcessID ident `json:"processId"`
	Metadata  *struct {
		ThreadID   ident `json:"threadId"`
		ToolCallID ident `json:"toolCallId"`
	} `json:"metadata"`
	Argv                  []string        `json:"argv"`
	Cwd                   string          `json:"cwd"`
	EnvPolicy             json.RawMessage `json:"envPolicy"`
	Env                   json.RawMessage `json:"env"`
	TTY                   bool            `json:"tty"`
	PipeStdin             bool            `json:"pipeStdin"`
	Arg0                  *string         `json:"arg0"`
	Sandbox               json.RawMessage `json:"sandbox"`
	EnforceManagedNetwork bool            `json:"enforceManagedNetwork"`
	ManagedNetwork        json.RawMessage `json:"managedNetwork"`
}

type processParams struct {
	ProcessID string `json:"processId"`
}

type readParams struct {
	ProcessID string `json:"processId"`
	AfterSeq  uint64 `json:"afterSeq"`
	MaxBytes  *int64 `json:"maxBytes"`
	WaitMS    int64  `json:"waitMs"`
}

type readResult struct {
	Chunks        []outputChunk `json:"chunks"`
	NextSeq       uint64        `json:"nextSeq"`
	Exited        bool          `json:"exited"` // the process has ended; Closed: its output too
	ExitCode      *int          `json:"exitCode"`
	Closed        bool          `json:"closed"`
	Failure       *string       `json:"failure"`
	SandboxDenied bool          `json:"sandboxDenied"`
}

type outputChunk struct {
	Seq    uint64 `json:"seq"`
	Stream string `json:"stream"`
	Chunk  []byte `json:"chunk"`
}

type outputParams struct {
	ProcessID string `json:"processId"`
	outputChunk
}

type writeParams struct {
	ProcessID string `json:"processId"`
	Chunk     []byte `json:"chunk"`
	WriteID   ident  `json:"writeId"`
}

type signalParams struct {
	ProcessID string `json:"processId"`
	Signal    string `json:"signal"`
}
