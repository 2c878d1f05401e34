package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// fetch prints what a path answers to a token, and fails unless the status is as wanted:
// fetch STATUS TOKEN PATH [SOCKET]. The token - is none.
func fetch(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	status, body := fetched(ts, args[1], args[2], args[3:]...)
	_, err = io.WriteString(ts.Stdout(), body)
	ts.Check(err)
	if status != want {
		ts.Fatalf("%s answers %s with %d: %s", args[2], args[1], status, body)
	}
}

func fetched(ts *testscript.TestScript, token, path string, socket ...string) (status int, body string) {
	req, err := http.NewRequest(http.MethodGet, "http://"+ts.Getenv("TOOLD_LISTEN")+path, nil)
	ts.Check(err)
	if token != "-" {
		secret, err := toold(ts, "token", "show", token)
		ts.Check(err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(secret))
	}
	transport := &http.Transport{}
	if len(socket) > 0 {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", ts.MkAbs(socket[0]))
		}
	}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	ts.Check(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	ts.Check(err)
	return res.StatusCode, string(text)
}

// awaitMetric waits until a line of /metrics fits: await-metric REGEXP.
func awaitMetric(ts *testscript.TestScript, _ bool, args []string) {
	line := regexp.MustCompile("(?m)^" + args[0] + "$")
	until(ts, args[0], func() bool {
		_, all := fetched(ts, "observer", "/metrics")
		return line.MatchString(all)
	})
}

// collect starts a collector for traces that answers with a status, and sets $COLLECTOR to its
// URL. It writes a line for each span: collect STATUS FILE.
func collect(ts *testscript.TestScript, _ bool, args []string) {
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		lines := fmt.Sprintf("%s %s: %v\n", r.Method, r.URL.Path, err)
		for _, span := range spansOf(body) {
			lines += span + "\n"
		}
		f, err := os.OpenFile(ts.MkAbs(args[1]), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = f.WriteString(lines)
			f.Close()
		}
		w.WriteHeader(status)
	}))
	ts.Defer(s.Close)
	ts.Setenv("COLLECTOR", s.URL)
}

// spansOf puts each span of a request into a line: its name and attributes, or the name of its
// parent and its own.
func spansOf(body []byte) (lines []string) {
	type span struct {
		SpanID, ParentSpanID, Name string
		Start                      string `json:"startTimeUnixNano"`
		End                        string `json:"endTimeUnixNano"`
		Attributes                 []struct {
			Key   string
			Value map[string]any
		}
	}
	var request struct {
		ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return []string{"not JSON: " + err.Error()}
	}
	names := map[string]string{}
	var all []span
	for _, r := range request.ResourceSpans {
		for _, s := range r.ScopeSpans {
			all = append(all, s.Spans...)
		}
	}
	for _, s := range all {
		names[s.SpanID] = s.Name
	}
	for _, s := range all {
		if s.ParentSpanID != "" {
			lines = append(lines, fmt.Sprintf("child %s of %s, in order %t", s.Name, names[s.ParentSpanID], s.Start <= s.End))
			continue
		}
		var list []string
		for _, a := range s.Attributes {
			for _, v := range a.Value {
				list = append(list, fmt.Sprintf("%s=%v", a.Key, v))
			}
		}
		slices.Sort(list)
		lines = append(lines, "span "+s.Name+" "+strings.Join(list, " "))
	}
	return lines
}
