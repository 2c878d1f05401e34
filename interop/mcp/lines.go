package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// mostLine is the maximum length of a line, in bytes. The daemon's limit for frames is lower.
const mostLine = 16 << 20

// lines reads one message per line. The SDK would end the session on an invalid line; lines answers it with a JSON-RPC
// error and skips it. It is not safe for concurrent use.
type lines struct {
	io.Closer
	in   *bufio.Reader
	out  *sharedWriter
	rest []byte // unread part of a message
	err  error  // returned after rest
}

func newLines(in io.ReadCloser, out *sharedWriter) *lines {
	return &lines{Closer: in, in: bufio.NewReaderSize(in, 64<<10), out: out}
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 && l.err == nil {
		var line []byte
		line, l.err = l.next()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := check(line); err != nil {
			l.refuse(line, err)
			continue
		}
		l.out.await()
		l.rest = append(bytes.TrimSpace(line), '\n')
	}
	if len(l.rest) == 0 {
		return 0, l.err
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads a line. It returns up to mostLine+1 bytes of it.
func (l *lines) next() (line []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		room := mostLine + 1 - len(line)
		line = append(line, part[:min(len(part), room)]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// check returns an error if a line is not a message.
func check(line []byte) error {
	trimmed := bytes.TrimSpace(line)
	switch {
	case len(line) > mostLine:
		return refusal(jsonrpc.CodeInvalidRequest, "the line is longer than %d bytes", mostLine)
	case !json.Valid(line):
		return refusal(jsonrpc.CodeParseError, "the line is not JSON: send each message as one line of JSON")
	case trimmed[0] == '[':
		return refusal(jsonrpc.CodeInvalidRequest, "batches of messages are not part of MCP: send each message as a line of its own")
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return refusal(jsonrpc.CodeInvalidRequest, "the line is no message of JSON-RPC 2.0: %v", err)
	}
	if id := idOf(line); isID(id) && id[0] != '"' && !isExact(id) {
		return refusal(jsonrpc.CodeInvalidRequest, "the id %.40s is no integer up to %d: send such a one, or a string", id, maxID)
	}
	return nil
}

// maxID is the largest integer below which float64, into which the SDK decodes ids, has all.
const maxID = 1 << 53

func isExact(id json.RawMessage) bool {
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && -maxID <= n && n <= maxID
}

func idOf(line []byte) json.RawMessage {
	var asked struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(line, &asked) != nil {
		return nil
	}
	return asked.ID
}

func refusal(code int64, format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// refuse answers a line with an error, and with the line's id if that is valid.
func (l *lines) refuse(line []byte, err error) {
	answer := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   error           `json:"error"`
	}{"2.0", json.RawMessage("null"), err}
	if id := idOf(line); isID(id) {
		answer.ID = id
	}
	text, err := json.Marshal(answer)
	if err == nil {
		_, err = l.out.Write(append(text, '\n'))
	}
	if l.err == nil {
		l.err = err // the client cannot receive answers
	}
}

func isID(id json.RawMessage) bool {
	if len(id) == 0 {
		return false
	}
	isDigit := '0' <= id[0] && id[0] <= '9'
	return id[0] == '"' || id[0] == '-' || isDigit
}

// maxAhead limits the messages that are read while a client does not read the answers.
const maxAhead = 1024

// sharedWriter serializes writes of whole messages.
type sharedWriter struct {
	io.Closer
	writes sync.Mutex
	to     io.Writer

	mu      sync.Mutex
	written sync.Cond // signals the end of a write
	writing int       // writes that have not ended
	ahead   int       // messages read without a write since, at most maxAhead
}

func newSharedWriter(to io.WriteCloser) *sharedWriter {
	w := &sharedWriter{Closer: to, to: to}
	w.written.L = &w.mu
	return w
}

func (w *sharedWriter) Write(p []byte) (int, error) {
	w.change(1)
	defer w.change(-1)
	w.writes.Lock()
	defer w.writes.Unlock()
	return w.to.Write(p)
}

func (w *sharedWriter) change(writing int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing += writing
	w.ahead = max(0, w.ahead+min(writing, 0))
	w.written.Broadcast()
}

// await is called before a message is handled. It waits while there are too many and the client does not read.
func (w *sharedWriter) await() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.ahead >= maxAhead && w.writing > 0 {
		w.written.Wait()
	}
	w.ahead = min(w.ahead+1, maxAhead)
}
