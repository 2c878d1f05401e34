//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/execution"
)

// execCheck holds a call against one thing that is expected of it and tells what
// is wrong, "" if nothing is.
type execCheck func(r *run, ctx context.Context, want json.RawMessage) string

// execChecks lists what a case can expect of a call, beside its output; see
// streamChecks.
func execChecks() map[string]execCheck {
	return map[string]execCheck{
		"status":         value((*run).checkStatus),
		"exit_code":      value((*run).checkExitCode),
		"exit_codes_all": field("exit_code"),
		"signal":         field("signal"),
		"truncated":      field("truncated"),
		"error_type":     field("error_type"),
		"reason":         value((*run).checkReason),
		"within_s":       value((*run).checkWithin),
		"min_s":          value((*run).checkAtLeast),
		"results":        value((*run).checkResults),
		"last_event":     value((*run).checkLast),
		"events":         value((*run).checkEvents),
		"events_not":     value((*run).checkNoEvents),
		"spool_bytes":    value((*run).checkSpool),
		"no_process":     value((*run).checkNoProcess),
		"side_effects":   (*run).checkSideEffects,
		"leftover_reported": value(func(r *run, want bool) string {
			list, _ := r.ret["leftovers"].([]any)
			return suite.Differs(len(list) > 0, want)
		}),
		"reassembled_exact":          value((*run).checkReassembled),
		"stream_text_no_replacement": value((*run).checkLiveText),
		"stdout_only_token":          value((*run).checkOnlyToken),
		"rlimit_nofile_equals_daemon_start": value(func(r *run, _ bool) string {
			return suite.Differs(r.output["stdout"], fmt.Sprintln(startLimit))
		}),
		// These hold once every repetition is over; see afterwards.
		"no_process_after_s": nothing, "no_leak": nothing, "daemon_rss_growth_mb_max": nothing, "daemon_alive": nothing,
	}
}

func nothing(*run, context.Context, json.RawMessage) string { return "" }

// value makes a check of one that takes what is expected as a value of Go.
func value[T any](check func(r *run, want T) string) execCheck {
	return func(r *run, _ context.Context, raw json.RawMessage) string {
		var want T
		if err := json.Unmarshal(raw, &want); err != nil {
			return "it cannot be understood: " + err.Error()
		}
		return check(r, want)
	}
}

// field checks a field of the return.
func field(name string) execCheck {
	return value(func(r *run, want any) string { return suite.Differs(r.ret[name], want) })
}

// checkExitCode compares the exit code. What runs on in the background has none
// yet: that it began well counts as 0.
func (r *run) checkExitCode(want any) string {
	if r.outputID() != r.id && r.ret["status"] == "success" {
		return suite.Differs(0.0, want)
	}
	return suite.Differs(r.ret["exit_code"], want)
}

// check holds the call against all that is expected and against what holds for
// every call.
func (r *run) check(ctx context.Context, expect map[string]json.RawMessage) (reasons []string) {
	checks := execChecks()
	for _, name := range slices.Sorted(maps.Keys(expect)) {
		check := checks[name]
		stream, c := execution.StreamCheck(name)
		if check == nil {
			check = func(r *run, _ context.Context, want json.RawMessage) string { return c(r.text(stream), want) }
		}
		why := check(r, ctx, expect[name])
		switch {
		case why == "":
		case stream != "" && r.status() == "timeout":
			r.p.late.Add(fmt.Sprintf("at the end of its time %s %s", name, why)) // it printed too late
		default:
			reasons = append(reasons, fmt.Sprintf("%s %s", name, why))
		}
	}
	reasons = append(reasons, r.always()...)
	if len(reasons) > 0 {
		reasons = append(reasons, fmt.Sprintf("call %s: %s", r.id, transcript(r.about, r.sent)))
	}
	return reasons
}

// always checks what holds for every call: the sizes in the return are those of
// the record, the return says what the record says, and live output is part of it.
func (r *run) always() (reasons []string) {
	for stream, got := range r.output {
		size, counted := r.ret[stream+"_bytes"].(float64)
		if !counted || int64(size) > fetchLimit || r.outputID() != r.id {
			continue
		}
		if int(size) != len(got) {
			reasons = append(reasons, fmt.Sprintf("%s_bytes is %.0f and %d bytes are recorded", stream, size, len(got)))
			continue
		}
		shown, _ := join(r.ret[stream])
		if r.ret["truncated"] == false && shown != strings.ToValidUTF8(got, "\ufffd") && utf8.ValidString(got) {
			reasons = append(reasons, fmt.Sprintf("%s of the return is %s, the record is %s", stream, suite.Short(shown), suite.Short(got)))
		}
		live, seen, err := r.live(stream, len(got))
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		for i, ok := range seen {
			if ok && live[i] != got[i] {
				reasons = append(reasons, fmt.Sprintf("byte %d of live %s is not what is recorded", i, stream))
				break
			}
		}
	}
	if r.ret != nil {
		reasons = append(reasons, r.oneAnswer()...)
	}
	return reasons
}

// oneAnswer checks that every return of the call, on whatever connection, is the
// same one.
func (r *run) oneAnswer() (reasons []string) {
	for _, f := range r.about {
		if m := f.value.(map[string]any); isReturn(m) && m["id"] != r.ret["id"] {
			reasons = append(reasons, fmt.Sprintf("two different returns: %s and %s", suite.Short(m["id"]), suite.Short(r.ret["id"])))
		}
	}
	return reasons
}

// status is how the call ended, in the words of the cases.
func (r *run) status() string {
	if r.ret == nil {
		if slices.ContainsFunc(r.about, func(f frame) bool { return typeIs(f.value, "error_message") }) {
			return "rejected"
		}
		return "no answer"
	}
	switch kind := r.ret["error_type"]; kind {
	case nil:
		return "exited"
	case "timeout":
		return "timeout"
	case "cancelled", "shutdown":
		return "cancelled"
	case "unknown_after_crash":
		return "lost"
	case "denied", "approval_timeout", "too_many_calls":
		return "rejected"
	case "invalid_arguments", "unknown_tool", "sandbox_unavailable", "internal_error":
		if r.ran() {
			return fmt.Sprint(kind, " after it ran")
		}
		return "spawn_error"
	default:
		return fmt.Sprint(kind)
	}
}

func (r *run) checkStatus(want string) string {
	got := r.status()
	if want == "cancelled" && r.c.Options.SignalAtMS != nil && got == "exited" {
		// A signal is delivered, no more: the command decides how it ends, and
		// toold tells that.
		got = want
	}
	return suite.Differs(got, want)
}

// checkReason compares the error that the client got.
func (r *run) checkReason(want string) string {
	names := map[string]string{"id_conflict": "duplicate_tool_call", "queue_full": "too_many_calls", "busy": "too_many_calls"}
	if name, ok := names[want]; ok {
		want = name
	}
	for _, f := range r.about {
		if m := f.value.(map[string]any); m["error_type"] == want {
			return ""
		}
	}
	return "does not appear as error_type " + want
}

// took is how long the call took, as its client saw it. A client that was away
// must believe the daemon.
func (r *run) took() time.Duration {
	if r.c.Options.DisconnectAtMS != nil {
		ms, _ := r.ret["duration_ms"].(float64)
		return time.Duration(ms) * time.Millisecond
	}
	return r.returned.Sub(r.sent)
}

func (r *run) checkWithin(seconds float64) string {
	if r.ret != nil {
		r.p.late.Check("within_s is", r.took(), time.Duration(seconds*float64(time.Second)))
	}
	return ""
}

func (r *run) checkAtLeast(seconds float64) string {
	if took := r.took(); took.Seconds() < seconds {
		return fmt.Sprintf("is %v: it took %v", seconds, took)
	}
	return ""
}

// checkResults counts the returns on the present life of the connection.
func (r *run) checkResults(want int) string {
	n := 0
	for _, f := range r.about {
		if isReturn(f.value) && f.life == r.p.conn.life {
			n++
		}
	}
	return suite.Differs(n, want)
}
