package calls

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

const (
	usualBytes = 30_000
	mostBytes  = 64 << 10
	mostWait   = 2 * time.Minute
)

type outputArguments struct {
	CallID string `json:"call_id" alias:"bash_id,shell_id,task_id" required:"true"`
	Offset *int64 `json:"offset"`
	Limit  *int64 `json:"limit"`
	Wait   int64  `json:"wait"`
	Stream string `json:"stream" enum:"combined|stdout|stderr"`
	argument.Ignored
}

func outputDefinition() tools.Definition {
	return tools.Definition{
		Name: "bash_output",
		Description: fmt.Sprintf("Returns the output of a running or ended call of this conversation: its end, or the part from offset on, at most %d bytes. "+
			"The first line says whether the call still runs or how it ended, and the next offset.", usualBytes),
		Parameters: argument.Schema(`"call_id"`, `"call_id":{"type":"string","description":"The id of the call, as bash or list_calls returned it."},`+
			`"offset":{"type":"integer","minimum":0,"description":"First byte to return. Default: the end of the output."},`+
			`"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Number of bytes to return."},`+
			`"wait":{"type":"integer","minimum":0,"maximum":%d,"description":"Milliseconds to wait for output from offset on (without offset, for any), or for the end of the call."},`+
			`"stream":{"type":"string","enum":["combined","stdout","stderr"],"description":"Default: combined."}`, mostBytes, mostWait.Milliseconds()),
	}
}

func (a outputArguments) build() (tools.Invocation, error) {
	p := piece{id: a.CallID, offset: -1, limit: usualBytes, wait: time.Duration(a.Wait) * time.Millisecond, stream: streams[a.Stream]}
	switch {
	case a.Offset != nil && *a.Offset < 0:
		return nil, fault("offset", "%d is negative; bytes are counted from 0", *a.Offset)
	case a.Limit != nil && (*a.Limit < 1 || *a.Limit > mostBytes):
		return nil, fault("limit", "%d is not between 1 and %d bytes", *a.Limit, mostBytes)
	case a.Wait < 0 || a.Wait > mostWait.Milliseconds():
		return nil, fault("wait", "%d is not between 0 and %d milliseconds; call again to wait longer", a.Wait, mostWait.Milliseconds())
	}
	if a.Offset != nil {
		p.offset = *a.Offset
	}
	if a.Limit != nil {
		p.limit = *a.Limit
	}
	return invocation{name: "bash_output", id: a.CallID, text: "Read the output of the call " + a.CallID, reads: true, run: p.run}, nil
}

var streams = map[string]tools.Stream{"": tools.Combined, "combined": tools.Combined, "stdout": tools.Stdout, "stderr": tools.Stderr}

type piece struct {
	id            string
	offset, limit int64 // negative offset: from the end
	wait          time.Duration
	stream        tools.Stream
}

func (p piece) run(ctx context.Context, io tools.IO) (tools.Result, error) {
	call, err := find(ctx, io, p.id)
	if err != nil {
		return tools.Result{}, err
	}
	s, err := p.await(ctx, call)
	if err != nil {
		return tools.Result{}, err
	}
	total := s.Bytes[p.stream]
	begin := p.offset
	switch {
	case begin > total && s.End != "":
		return tools.Result{}, fault("offset", "offset %d is beyond the end: %s of %s has %d bytes, and no more will come: it ended (%s)", begin, p.stream, s.ID, total, s.End)
	case begin > total:
		return tools.Result{}, fault("offset", "offset %d is beyond the end: %s of %s has %d bytes so far; read on from offset %d", begin, p.stream, s.ID, total, total)
	case begin < 0:
		begin = max(0, total-p.limit)
	}
	data, from := call.ReadAt(p.stream, begin, int(p.limit))
	if len(data) == 0 && from < total {
		return tools.Result{Text: p.header(s, from, total) + "\n" + notKept(s)}, nil
	}
	data = whole(data, from, total)
	if p.offset < 0 && from > 0 {
		data, from = fromLine(data, from)
	}
	data = p.recordable(call, data, from)
	return tools.Result{Text: p.header(s, from, from+int64(len(data))) + "\n" + display.Clean(data)}, nil
}

// notKept explains that a part of the output is lost, so that the model does not request it again.
func notKept(s tools.CallStatus) string {
	if s.End != "" {
		return "These bytes are not kept any more, or never were (limits.spool_bytes, limits.spool_keep). Do not ask for them again: the return of the call has the beginning and the end of its output."
	}
	return "These bytes are not kept. Read on from the next offset."
}

// recordable masks secrets that the ends of data cut.
func (p piece) recordable(call tools.OtherCall, data []byte, from int64) []byte {
	before, at := call.ReadAt(p.stream, max(0, from-redact.Reach), int(min(from, redact.Reach)))
	if at+int64(len(before)) != from {
		before = nil // not contiguous
	}
	end := from + int64(len(data))
	after, at := call.ReadAt(p.stream, end, redact.Reach)
	if at != end {
		after = nil
	}
	return redact.Part(slices.Concat(before, data, after), len(before), len(before)+len(data))
}

func (p piece) await(ctx context.Context, call tools.OtherCall) (tools.CallStatus, error) {
	over := time.After(p.wait)
	for {
		changed := call.Changed()
		s := call.Status()
		if changed == nil || p.wait == 0 || s.Bytes[p.stream] > max(p.offset, 0) {
			return s, nil
		}
		select {
		case <-changed:
		case <-over:
			return call.Status(), nil
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

func (p piece) header(s tools.CallStatus, from, to int64) string {
	state := "is " + s.State
	if s.End != "" {
		state = "ended: " + s.End
	}
	total := max(s.Bytes[p.stream], to)
	text := fmt.Sprintf("[%s %s; bytes %d-%d of %d of %s", s.ID, state, from, to, total, p.stream)
	if to < total || s.End == "" {
		text += fmt.Sprintf("; next offset %d", to)
	}
	return text + "]"
}

// whole cuts data after its last line or, for long lines, its last character, unless it reaches the end of the output.
func whole(data []byte, from, total int64) []byte {
	if from+int64(len(data)) >= total {
		return data
	}
	if i := bytes.LastIndexByte(data, '\n'); i >= len(data)/2 {
		return data[:i+1]
	}
	for back := 1; back < utf8.UTFMax && back < len(data); back++ {
		if last := data[len(data)-back:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return data[:len(data)-back]
			}
			break
		}
	}
	return data
}

func fromLine(data []byte, from int64) ([]byte, int64) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 && i < len(data)/2 {
		return data[i+1:], from + int64(i) + 1
	}
	return data, from
}
