//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite/execution"
	"github.com/toold/toold/message"
)

// rig is a daemon under load, for stress tests and benchmarks. Its policy allows
// everything, and an approver agrees to what no policy can allow.
type rig struct {
	tb      testing.TB
	program string
	site    *site
	daemon  *daemon
}

// newRig starts a daemon; settings, which may be nil, are added to its
// configuration. It ends with the test.
func newRig(tb testing.TB, settings map[string]any) *rig {
	tb.Helper()
	if why := unconfined(tb.Context()); why != "" {
		tb.Skip(why)
	}
	program, err := underTest.pathOf(context.WithoutCancel(tb.Context()))
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{tb: tb, program: program}
	if r.site, err = newExecSite(tb.TempDir(), execution.Case{}); err != nil {
		tb.Fatal(err)
	}
	if err := r.site.add(settings); err != nil {
		tb.Fatal(err)
	}
	r.restart()
	tb.Cleanup(func() {
		if err := r.daemon.stop(syscall.SIGTERM); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// restart starts the daemon, which does not run, and an approver.
func (r *rig) restart() {
	r.tb.Helper()
	limit, cancel := context.WithTimeout(r.tb.Context(), patience)
	defer cancel()
	var err error
	if r.daemon, err = startDaemon(limit, r.program, r.site); err != nil {
		r.tb.Fatal(err)
	}
	yes, err := approver(limit, r.daemon)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(yes.close)
}

// add adds settings to the configuration of a site.
func (s *site) add(settings map[string]any) error {
	all := map[string]any{}
	text, err := os.ReadFile(s.config)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for name, value := range settings {
		all[name] = value
	}
	if text, err = json.Marshal(all); err != nil {
		return err
	}
	return os.WriteFile(s.config, text, 0o600)
}

// dial connects an agent.
func (r *rig) dial(o client.Options) *client.Client {
	r.tb.Helper()
	o.URL, o.Token = r.daemon.ws, r.daemon.tokens["agent"]
	c, err := client.Dial(r.tb.Context(), o)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { c.Close() })
	return c
}

// bash calls bash and fails the test unless it succeeds.
func (r *rig) bash(c *client.Client, script, terminal string, events client.Events) message.ToolReturn {
	ret, err := r.try(c, script, terminal, events)
	if err != nil || ret.Status != "success" {
		r.tb.Errorf("%q on %s: %v %.300s", script, terminal, err, ret.Result)
	}
	return ret
}

// try calls bash.
func (r *rig) try(c *client.Client, script, terminal string, events client.Events) (message.ToolReturn, error) {
	return c.Call(r.tb.Context(), client.Call{Tool: "bash", Arguments: map[string]any{"command": script, "terminal": terminal}}, events)
}

// survivors lists the processes of whose command line text is part.
func survivors(text string) (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range files {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(text)) {
			list = append(list, path+": "+string(line))
		}
	}
	return list
}

// reservePort returns a port of 127.0.0.1 that the kernel gives to no one else. A server can listen
// on it: its socket and this one, which only is bound, both have SO_REUSEADDR.
func reservePort(tb testing.TB) string {
	tb.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { syscall.Close(fd) })
	if err := errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
	); err != nil {
		tb.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		tb.Fatal(err)
	}
	return strconv.Itoa(at.(*syscall.SockaddrInet4).Port)
}

// stream puts a returned stream together.
func stream(parts []string) string {
	text := ""
	for _, part := range parts {
		text += part
	}
	return text
}

// percentile of durations, which it sorts.
func percentile(d []time.Duration, p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(p*float64(len(d))))]
}
