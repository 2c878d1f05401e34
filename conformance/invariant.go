//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/internal/lazyregexp"
)

// invariant checks a property that a case states in words. Texts that are not
// in the table are reported as not checked.
func (p *player) invariant(ctx context.Context, text string) []string {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, v := range invariants() {
		if m := v.text.FindStringSubmatch(text); m != nil {
			if err := v.check(p, limit, m[1:]); err != nil {
				return []string{text + ": " + err.Error()}
			}
			return nil
		}
	}
	p.unchecked(p.c.ID + ": " + text)
	return nil
}

type invariantCheck struct {
	text  *regexp.Regexp
	check func(p *player, ctx context.Context, words []string) error
}

// invariants lists the properties that can be checked.
func invariants() []invariantCheck {
	is := func(text string, check func(*player, context.Context, []string) error) invariantCheck {
		return invariantCheck{regexp.MustCompile("^" + text + "$"), check}
	}
	return []invariantCheck{
		is(`every frame is valid UTF-8 JSON`, noCheck), // every frame of every case is checked on arrival
		is(`every frame <= limit`, (*player).framesWithinLimit),
		is(`wire bytes <= ([\d.]+) x what the client subscribed to`, (*player).wireCost),
		is(`daemon RSS growth <= (\d+) MiB`, (*player).memoryWithin),
		is(`daemon memory does not grow by more than the limit`, (*player).memoryWithinLimit),
		is(`limit announced in hello_ack`, (*player).limitAnnounced),
		is(`daemon alive`, (*player).daemonAlive),
		is(`log volume bounded`, (*player).logBounded),
		is(`other connections answer within (\d+) ms`, (*player).othersAnswered),
		is(`no process of the call survives`, (*player).noSurvivor),
		is(`get_output returns the exact bytes ([0-9a-f ]+) \(base64\)`, (*player).outputBytes),
		is(`concatenated deltas do not contain (\S+)`, (*player).deltasWithout),
		is(`journal and spool do not contain (\S+)`, (*player).stateWithout),
		is(`otid of (\S+) differs from (\S+)`, (*player).otidDiffers),
		is(`(\S+) newest first`, (*player).newestFirst),
		is(`every id of (\S+) is older than every id of (\S+)`, (*player).olderThan),
		is(`strictly increasing seq`, (*player).increasing),
		is(`sequence numbers never reused`, (*player).increasing),
		is(`all (\w+) == (\S+)`, (*player).allHave),
		is(`only (\w+)`, (*player).onlyType),
		is(`(\S+) rows precede (\S+) rows`, (*player).rowsPrecede),
	}
}

func noCheck(*player, context.Context, []string) error { return nil }

// watch measures the daemon while the steps are played.
type watch struct {
	before   int64 // resident memory, bytes
	answered chan struct{}
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu      sync.Mutex
	slowest time.Duration // of the answers on another connection
	fault   error
}

// newWatch measures the memory and, if a case is about other connections, pings the daemon on another one until stop.
func newWatch(ctx context.Context, p *player) (*watch, error) {
	w := &watch{answered: make(chan struct{}, 1)}
	ctx, w.cancel = context.WithCancel(ctx)
	pid := p.daemon.pid
	resetPeak(pid)
	w.before = memory(pid, "VmRSS")
	if !slices.ContainsFunc(p.c.Expect.Invariants, func(s string) bool { return strings.HasPrefix(s, "other connections") }) {
		return w, nil
	}
	onFrame := func(*conn, int, []byte) {
		select {
		case w.answered <- struct{}{}:
		default:
		}
	}
	c, err := dial(ctx, p.daemon, "(other)", 0, p.daemon.tokens["agent"], onFrame, func() {})
	if err != nil {
		return w, err
	}
	p.allConns = append(p.allConns, c)
	if err := w.ping(c); err != nil {
		return w, err
	}
	// Ends when stop is called and the last question is answered, or when the daemon
	// does not answer.
	w.done.Go(func() { w.pingLoop(ctx, c) })
	return w, nil
}

// pingLoop asks until ctx ends, which is when the steps of the case have been played.
func (w *watch) pingLoop(ctx context.Context, c *conn) {
	for suite.Sleep(ctx, 20*time.Millisecond) == nil {
		if err := w.ping(c); err != nil {
			w.mu.Lock()
			w.fault = err
			w.mu.Unlock()
			return
		}
	}
}

// ping measures how long the answer to a ping takes.
func (w *watch) ping(c *conn) error {
	asked := time.Now()
	if err := c.send(websocket.TextMessage, []byte(`{"message_type":"ping","nonce":"other"}`)); err != nil {
		return err
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-w.answered:
	case <-c.ended:
		return errors.New("the other connection was closed")
	case <-limit.C:
		return fmt.Errorf("no answer within %v", patience)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowest = max(w.slowest, time.Since(asked))
	return nil
}

func (w *watch) stop() {
	w.cancel()
	w.done.Wait()
}

func (p *player) othersAnswered(_ context.Context, words []string) error {
	p.watch.stop()
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	ms, _ := strconv.Atoi(words[0])
	p.late.Check("the slowest answer may take", p.watch.slowest, time.Duration(ms)*time.Millisecond)
	return p.watch.fault
}

// resetPeak resets the peak of a process's memory (proc(5), clear_refs). Where that is not allowed, the peak includes
// the start, which makes checks stricter.
func resetPeak(pid int) { os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) }

// memory reads a value of /proc/PID/status, in bytes.
func memory(pid int, field string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for l := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(l, field+":"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}

func (p *player) memoryWithin(_ context.Context, words []string) error {
	mib, _ := strconv.ParseInt(words[0], 10, 64)
	return p.checkGrowth(mib << 20)
}

func (p *player) memoryWithinLimit(context.Context, []string) error {
	return p.checkGrowth(p.frameLimit())
}

func (p *player) checkGrowth(limit int64) error {
	peak := memory(p.daemon.pid, "VmHWM")
	if peak == 0 || peak-p.watch.before > limit {
		return fmt.Errorf("the daemon grew from %d KiB to %d KiB", p.watch.before>>10, peak>>10)
	}
	return nil
}

// frameLimit is limits.max_frame_bytes of the case.
func (p *player) frameLimit() int64 {
	if n, err := strconv.ParseInt(string(p.c.Setup.Limits["max_frame_bytes"]), 10, 64); err == nil {
		return n
	}
	return 16 << 20
}

func (p *player) framesWithinLimit(context.Context, []string) error {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	if int64(p.rec.biggest) > p.frameLimit() {
		return fmt.Errorf("a frame has %d bytes, the limit is %d", p.rec.biggest, p.frameLimit())
	}
	return nil
}

// wireCost compares all received bytes with the live output in them. 256 KiB are allowed for other frames.
func (p *player) wireCost(_ context.Context, words []string) error {
	factor, _ := strconv.ParseFloat(words[0], 64)
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	for name, wire := range p.rec.wire {
		if payload := p.rec.payload[name]; float64(wire) > factor*float64(payload)+256<<10 {
			return fmt.Errorf("connection %s received %d bytes for %d bytes of output", name, wire, payload)
		}
	}
	return nil
}

func (p *player) limitAnnounced(ctx context.Context, _ []string) error {
	if _, err := p.connect(ctx, "(greeted)"); err != nil {
		return err
	}
	if err := p.conns["(greeted)"].send(websocket.TextMessage, []byte(`{"message_type":"hello","protocol":1}`)); err != nil {
		return err
	}
	f, err := p.await(ctx, "(greeted)", matcher{"message_type": "hello_ack"})
	if err != nil {
		return err
	}
	got, _ := lookup("limits.max_frame_bytes", f.value)
	if got != float64(p.frameLimit()) {
		return fmt.Errorf("limits.max_frame_bytes is %s, want %d", suite.Short(got), p.frameLimit())
	}
	return nil
}

func (p *player) daemonAlive(ctx context.Context, _ []string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.daemon.http+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/healthz answers %s", response.Status)
	}
	return nil
}

func (p *player) logBounded(context.Context, []string) error {
	if n := p.daemon.log.size(); n > 256<<10 {
		return fmt.Errorf("the daemon logged %d bytes", n)
	}
	return nil
}

// shortSleep separates what a script prints on its streams. It is too short for a busy machine.
var shortSleep = lazyregexp.New(`\bsleep 0\.0\d\b`)

var sleepArgument = lazyregexp.New(`\bsleep (\d+)\b`)

// adapt changes the sleeps in the scripts of a case. Where it checks for surviving processes they carry its mark, so that
// only its own are found. Where a connection is frozen they are longer than the daemon waits for its peer.
func (p *player) adapt() {
	p.c.Send = slices.Clone(p.c.Send) // the case may be played again
	for i, s := range p.c.Send {
		p.c.Send[i].JSON = shortSleep().ReplaceAll(s.JSON, []byte("sleep 1"))
	}
	if ms, ok := p.c.Setup.Limits["external_yield_ms"]; ok {
		p.yield = string(ms) + "ms"
	}
	longer := ""
	switch {
	case slices.Contains(p.c.Expect.Invariants, "no process of the call survives"):
		longer = "sleep $1." + p.secret
	case freezes(p.c):
		longer = "sleep $1; sleep " + strconv.Itoa(int(4*p.site.ping/time.Second))
	default:
		return
	}
	for i, s := range p.c.Send {
		p.c.Send[i].JSON = sleepArgument().ReplaceAll(s.JSON, []byte(longer))
	}
}

func (p *player) noSurvivor(context.Context, []string) error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		return fmt.Errorf("cannot list processes: %v", err)
	}
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err == nil && bytes.Contains(line, []byte("."+p.secret)) {
			return fmt.Errorf("%s still runs %q", path, line)
		}
	}
	return nil
}

func (p *player) outputBytes(ctx context.Context, words []string) error {
	frames, _ := p.rec.all()
	i := slices.IndexFunc(frames, func(f frame) bool { return isReturn(f.value) })
	if i < 0 {
		return errors.New("there is no return")
	}
	answer, err := p.ask(ctx, map[string]any{
		"message_type": "get_output", "request_id": "exact bytes", "stream": "stdout", "offset": 0, "limit": 1000,
		"tool_call_id": frames[i].value.(map[string]any)["tool_call_id"],
	})
	if err != nil {
		return err
	}
	m := answer.(map[string]any)
	b64, _ := m["data_b64"].(string)
	got, err := base64.StdEncoding.DecodeString(b64)
	if want := words[0]; err != nil || fmt.Sprintf("% x", got) != want {
		return fmt.Errorf("it returned %s", text(answer))
	}
	return nil
}

func (p *player) deltasWithout(_ context.Context, words []string) error {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	for key, b := range p.rec.deltas {
		if strings.Contains(b.String(), words[0]) {
			return fmt.Errorf("those of %s do", key)
		}
	}
	if len(p.rec.deltas) == 0 {
		return errors.New("there were no deltas")
	}
	return nil
}

func (p *player) stateWithout(_ context.Context, words []string) error {
	return filepath.WalkDir(p.site.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a file that was there a moment ago
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(words[0])) {
			return fmt.Errorf("%s does", path)
		}
		return nil
	})
}

func (p *player) otidDiffers(_ context.Context, words []string) error {
	otids := map[string]any{}
	frames, _ := p.rec.all()
	for _, f := range frames {
		if m, _ := f.value.(map[string]any); isReturn(f.value) {
			id, _ := m["tool_call_id"].(string)
			otids[id] = m["otid"]
		}
	}
	a, b := otids[words[0]], otids[words[1]]
	if a == nil || b == nil || a == b {
		return fmt.Errorf("they are %s and %s", suite.Short(a), suite.Short(b))
	}
	return nil
}
