//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// decided counts the policy cases of this run of the test binary.
var decided policyTally

// TestPolicyCases asks the daemon how it would decide the calls of the case
// files. Nothing of them runs.
func TestPolicyCases(t *testing.T) {
	t.Parallel()
	court := newCourt(t)
	cases, err := readPolicyCases(court.places, namedFiles("TOOLD_CASES_POLICY", "policy.jsonl")...)
	if err != nil {
		t.Fatal(err)
	}
	decided.begin(len(cases))
	for _, l := range cases {
		t.Run(l.c.ID, func(t *testing.T) {
			d, why := court.try(t.Context(), l)
			decided.count(l.c, d, why)
			if why != "" {
				t.Error(why)
			}
		})
	}
}

// TestPolicyRunnerFailsFalseCases plays cases that expect the wrong decision. A
// runner that passes one of them would pass anything.
func TestPolicyRunnerFailsFalseCases(t *testing.T) {
	t.Parallel()
	court := newCourt(t)
	court.policies = filepath.Join("testdata", "policies")
	cases, err := readPolicyCases(court.places, filepath.Join("testdata", "policy-false.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("there is no false case")
	}
	for _, l := range cases {
		t.Run(l.c.ID, func(t *testing.T) {
			if _, why := court.try(t.Context(), l); why == "" || !regexp.MustCompile(l.c.MustFail).MatchString(why) {
				t.Errorf("the case failed with %q, want %q", why, l.c.MustFail)
			}
		})
	}
}

// court decides cases: one daemon for each policy, all on one tree of files.
type court struct {
	places
	program  string
	base     string // for what is not part of the tree
	policies string // the folder of policies
	judges   map[string]*judge
	t        *testing.T
}

// newCourt builds the tree. Its daemons start when a case needs them, and end
// with the test.
func newCourt(t *testing.T) *court {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the cases need git to build the repositories that they are about")
	}
	program, err := underTest.get(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	p, err := buildTree(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := os.Getenv("TOOLD_CASES_POLICIES")
	if folder == "" {
		folder = filepath.Join("testdata", "policies")
	}
	return &court{
		places: p, program: program, base: t.TempDir(), policies: fromRoot(folder),
		judges: map[string]*judge{}, t: t,
	}
}

// try plays one case and tells why it failed, "" if it passed.
func (c *court) try(ctx context.Context, l policyLine) (explained, string) {
	if l.err != nil {
		return explained{}, fmt.Sprintf("%s: cannot read the case: %v", l.place, l.err)
	}
	defer turn(false)()
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	j, err := c.judge(limit, l.c.Policy)
	if err != nil {
		return explained{}, fmt.Sprintf("%s: %v", l.place, err)
	}
	d, err := j.ask(limit, l.c.call(c.places))
	if err != nil {
		return d, fmt.Sprintf("%s: %v", l.place, err)
	}
	return d, l.c.wrong(d)
}

// judge is a daemon with one policy.
type judge struct {
	daemon  *daemon
	conn    *conn
	answers chan []byte
	asked   int
}

// judge returns the daemon of a policy, started at the first case.
func (c *court) judge(ctx context.Context, policy string) (*judge, error) {
	if j, ok := c.judges[policy]; ok {
		return j, nil
	}
	s, err := c.site(policy)
	if err != nil {
		return nil, err
	}
	d, err := startDaemon(ctx, c.program, s)
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(func() {
		if err := d.stop(syscall.SIGTERM); err != nil {
			c.t.Error(err)
		}
	})
	j := &judge{daemon: d, answers: make(chan []byte, 16)}
	j.conn, err = dial(ctx, d, "approver", 0, d.tokens["approver"], j.received, func() {})
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(j.conn.hangUp)
	c.judges[policy] = j
	return j, nil
}

// site writes the policy with its placeholders filled in, and a configuration
// that names it.
func (c *court) site(policy string) (*site, error) {
	rules, err := os.ReadFile(filepath.Join(c.policies, policy+".yaml"))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.base, policy)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	s := &site{
		home: c.home, workspace: c.ws, ping: time.Minute,
		state: filepath.Join(dir, "state"), config: filepath.Join(dir, "config.yaml"),
		// Calls may write there, so that no program counts as missing, whatever is installed.
		env: []string{"PATH=" + os.Getenv("PATH") + ":" + c.base},
	}
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(c.fill(string(rules))), 0o600); err != nil {
		return nil, err
	}
	settings, err := s.settings(setup{}, file)
	if err != nil {
		return nil, err
	}
	return s, os.WriteFile(s.config, settings, 0o600)
}

// received keeps the answers; other frames are not about explain_policy.
func (j *judge) received(_ *conn, _ int, data []byte) {
	var head struct {
		RequestID string `json:"request_id"`
	}
	if json.Unmarshal(data, &head) == nil && head.RequestID != "" {
		j.answers <- data
	}
}

// ask asks how a call would be decided.
func (j *judge) ask(ctx context.Context, call map[string]any) (explained, error) {
	j.asked++
	id := fmt.Sprint("case-", j.asked)
	frame, err := json.Marshal(map[string]any{"message_type": "explain_policy", "request_id": id, "call": call})
	if err != nil {
		return explained{}, err
	}
	if err := j.conn.send(websocket.TextMessage, frame); err != nil {
		return explained{}, err
	}
	for {
		select {
		case data := <-j.answers:
			if d, err := decision(data); err != nil || d.RequestID == id {
				return d, err
			}
		case <-j.conn.ended:
			return explained{}, errors.New("the daemon closed the connection")
		case <-ctx.Done():
			return explained{}, errors.New("no answer in time")
		}
	}
}

// policyTally counts the decisions.
type policyTally struct {
	mu         sync.Mutex
	expected   int
	passed     int
	categories map[string]*[2]int // passed and failed
	allowed    []string           // attacks that would run
	failed     []string
}

func (r *policyTally) begin(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected += n
}

// count adds the decision of a case; why tells how it failed, "" if it passed.
func (r *policyTally) count(c policyCase, d explained, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.categories == nil {
		r.categories = map[string]*[2]int{}
	}
	n := r.categories[c.Category]
	if n == nil {
		n = new([2]int)
		r.categories[c.Category] = n
	}
	switch {
	case why == "":
		r.passed++
		n[0]++
		return
	case c.Kind == "attack" && d.Action == "allow":
		r.allowed = append(r.allowed, c.ID+": "+why)
	default:
		r.failed = append(r.failed, c.ID+": "+why)
	}
	n[1]++
}

// print names what failed, the worst first, then counts: with -v for each category.
func (r *policyTally) print(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.expected == 0 {
		return
	}
	for _, text := range r.allowed {
		fmt.Fprintln(w, "policy: ALLOWED:", text)
	}
	for _, text := range r.failed {
		fmt.Fprintln(w, "policy: failed:", text)
	}
	for _, name := range slices.Sorted(maps.Keys(r.categories)) {
		if !testing.Verbose() {
			break
		}
		fmt.Fprintf(w, "policy: %s: %d passed, %d failed\n", name, r.categories[name][0], r.categories[name][1])
	}
	fmt.Fprintf(w, "policy: %d passed, %d failed\n", r.passed, len(r.allowed)+len(r.failed))
}
