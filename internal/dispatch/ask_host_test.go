package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// contacting is the connections of a call that tries hosts by itself, under the
// policy of connecting.
func contacting(t *testing.T) (*bench, *connections) {
	t.Helper()
	b, _ := connecting(t, "")
	c, _ := b.newCall(Submission{Client: "agent", Request: &message.Request{}, Call: message.ToolCall{ID: "c1", Name: "probe"}})
	c.workspace = b.workspace
	return b, b.connections(c, b.tool)
}

// strangers are hosts about which no rule says anything.
func strangers(n int) (hosts []string) {
	for i := range n {
		hosts = append(hosts, fmt.Sprintf("h%d.example", i))
	}
	return hosts
}

func TestFewHostsOfACallWaitForAPersonAtATime(t *testing.T) {
	t.Parallel()
	b, n := contacting(t)
	person := newHesitant()
	defer b.approvals.Join(person)()
	hosts := strangers(b.opt.Limits.AskedHosts)
	var all sync.WaitGroup
	for _, host := range hosts {
		// Ends with the answer.
		all.Go(func() {
			if err := n.decide(t.Context(), host, []uint16{443}); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		})
	}
	for range hosts {
		r := <-person.asked
		if waiting := len(b.approvals.Pending()); waiting > askedAtOnce {
			t.Errorf("%d hosts wait at a time, want at most %d", waiting, askedAtOnce)
		}
		b.resolve(t, r.ID, approval.Verdict{Approve: true, By: "ann"})
		<-person.resolved
	}
	all.Wait()
}

// answering answers the questions that come as yes tells, and keeps what was shown.
func answering(t *testing.T, b *bench, yes func(message.ApprovalRequest) bool) (shown func() []string) {
	t.Helper()
	person := newHesitant()
	leave := b.approvals.Join(person)
	var all []string
	stop, done := make(chan struct{}), make(chan struct{})
	// Ends with stop.
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case r := <-person.asked:
				var effects []string
				for _, e := range r.Show.Effects {
					effects = append(effects, e.Text)
				}
				all = append(all, strings.Join(effects, ", ")+" by "+r.Show.Rule)
				_ = b.approvals.Resolve(r.ID, approval.Verdict{Approve: yes(r.Show), By: "ann"})
			}
		}
	}()
	return func() []string {
		leave()
		close(stop)
		<-done
		return all
	}
}

func TestAnAnswerCountsForThePortsThatWereShown(t *testing.T) {
	t.Parallel()
	b, n := contacting(t)
	shown := answering(t, b, func(r message.ApprovalRequest) bool { return strings.Contains(r.Reason, "80, 443, no others") })
	for _, c := range []struct {
		ports []uint16
		want  bool
	}{{[]uint16{80, 443}, true}, {[]uint16{443}, true}, {[]uint16{8080}, false}, {[]uint16{80}, true}, {[]uint16{8080}, false}} {
		if err := n.decide(t.Context(), "h.example", c.ports); (err == nil) != c.want {
			t.Errorf("%v: %v", c.ports, err)
		}
	}
	want := []string{"contact h.example:80, contact h.example:443 by defaults.net", "contact h.example:8080 by defaults.net"}
	if got := shown(); !slices.Equal(got, want) {
		t.Errorf("shown %q, want %q", got, want)
	}
	for _, e := range n.call.Events(0) {
		if d, ok := e.(message.ConnectionDecision); ok && d.Action == "allow" && !slices.Equal(d.Ports, []int{80, 443}) {
			t.Errorf("recorded as %+v", d)
		}
	}
}

func TestAnAnswerToOneRuleIsNoAnswerToAnother(t *testing.T) {
	t.Parallel()
	b, n := contacting(t)
	rules := compiled(t, policy.File{
		Name: "test", Defaults: policy.Defaults{Net: policy.Ask},
		Net: []policy.Rule{{ID: "secure", Action: policy.Ask, Hosts: []string{"h.example"}, Schemes: []string{"https"}}},
	})
	b.SetPolicy(rules)
	shown := answering(t, b, func(r message.ApprovalRequest) bool { return r.Rule == "defaults.net" })
	for _, c := range []struct {
		ports []uint16
		want  bool
	}{{[]uint16{80, 443, 8080}, true}, {[]uint16{443}, false}, {[]uint16{8080}, false}, {[]uint16{80}, true}} {
		if err := n.decide(t.Context(), "h.example", c.ports); (err == nil) != c.want {
			t.Errorf("%v: %v", c.ports, err)
		}
	}
	want := []string{"contact h.example:80 by defaults.net", "contact h.example:443 by secure", "contact h.example:8080 by secure"}
	if got := shown(); !slices.Equal(got, want) {
		t.Errorf("shown %q, want %q", got, want)
	}
}

// The next version of the policy is asked anew, port by port.
func TestAQuestionThatAnotherPolicySettlesIsJudgedAnew(t *testing.T) {
	t.Parallel()
	b, n := contacting(t)
	person := newHesitant()
	defer b.approvals.Join(person)()
	decided := make(chan error)
	// Ends with the decision.
	go func() { decided <- n.decide(t.Context(), "h.example", []uint16{80, 443}) }()
	<-person.asked
	rules := compiled(t, policy.File{
		Name: "test", Defaults: policy.Defaults{Net: policy.Ask},
		Net: []policy.Rule{{ID: "plain", Action: policy.Deny, Schemes: []string{"http"}, Hosts: []string{"h.example"}}},
	})
	b.SetPolicy(rules)
	r := <-person.asked
	if len(r.Show.Effects) != 1 || r.Show.Effects[0].Text != "contact h.example:443" {
		t.Errorf("shown %+v", r.Show.Effects)
	}
	b.resolve(t, r.ID, approval.Verdict{Approve: true, By: "ann"})
	if err := <-decided; err != nil {
		t.Error(err)
	}
	if err := n.decide(t.Context(), "h.example", []uint16{80}); err == nil || !strings.Contains(err.Error(), "plain") {
		t.Errorf("port 80: %v", err)
	}
}

func TestHostsWhoseNamesEndInDigitsAreToldApart(t *testing.T) {
	t.Parallel()
	_, n := contacting(t)
	for host, port := range map[string]uint16{"h.e": 8080, "h.e80": 80, "h.e8": 80} { // no approver is connected
		if err := n.decide(t.Context(), host, []uint16{port}); err == nil {
			t.Errorf("%s is let through", host)
		}
	}
	if told := decisions(n.call); len(told) != 3 {
		t.Errorf("told %q", told)
	}
}

func TestACallThatAsksForTooManyHostsIsRefusedTheRest(t *testing.T) {
	t.Parallel()
	b, n := contacting(t)
	most := b.opt.Limits.AskedHosts
	for i, host := range strangers(most + 2) { // no approver is connected
		err := n.decide(t.Context(), host, []uint16{443})
		if err == nil || strings.Contains(err.Error(), "limits.asked_hosts") != (i >= most) {
			t.Errorf("host %d: %v", i, err)
		}
	}
	if err := n.decide(t.Context(), "a.good.example", []uint16{443}); err != nil {
		t.Errorf("a host that a rule allows is no question: %v", err)
	}
	told := decisions(n.call)
	if len(told) != most+3 || told[most] != fmt.Sprintf("h%d.example deny policy defaults.net", most) {
		t.Errorf("told %q", told)
	}
}

// Who asks may be gone before the answer; the next one has its own question.
func TestAnUnansweredHostIsAskedAgain(t *testing.T) {
	t.Parallel()
	b, n := contacting(t)
	person := newHesitant()
	defer b.approvals.Join(person)()
	first, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	// Ends with leave.
	go func() { gone <- n.decide(first, "h.example", []uint16{443}) }()
	<-person.asked
	second := make(chan error)
	// Ends with the answer.
	go func() { second <- n.decide(t.Context(), "h.example", []uint16{443}) }()
	leave()
	if err := <-gone; err == nil {
		t.Error("a question without an answer lets through")
	}
	r := <-person.asked
	b.resolve(t, r.ID, approval.Verdict{Approve: true, By: "ann"})
	if err := <-second; err != nil {
		t.Error(err)
	}
}

func TestNobodyIsLetThroughByADecisionThatIsNotJournalled(t *testing.T) {
	t.Parallel()
	b, n := contacting(t)
	other := must.Get(journal.Open(t.Context(), b.dir, journal.Self()))(t)
	defer other.Close()
	// Another daemon writes: what this one has to write waits.
	busy, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	// Ends with release.
	all.Go(func() {
		_, _, err := other.Answer(t.Context(), journal.Call{Client: "x", ID: "x", MessageType: "x", Message: []byte("{}")}, false, journal.Outcome{},
			func(int64) (string, []byte, error) {
				close(busy)
				<-release
				return "x", []byte("{}"), nil
			})
		if err != nil {
			t.Error(err)
		}
	})
	<-busy
	var written atomic.Bool
	for range 2 {
		// Ends when the decision is written.
		all.Go(func() {
			if err := n.decide(t.Context(), "a.good.example", []uint16{443}); err != nil || !written.Load() {
				t.Errorf("let through with %v, before its decision is written: %v", err, !written.Load())
			}
		})
	}
	if _, err := b.journal.List(t.Context(), journal.Query{}); !errors.Is(err, journal.ErrBusy) { // meanwhile both can get there
		t.Error(err)
	}
	written.Store(true)
	close(release)
	all.Wait()
}

func TestAnAnswerThatCannotBeJournalledLetsNobodyThrough(t *testing.T) {
	t.Parallel()
	b, n := contacting(t)
	person := newHesitant()
	defer b.approvals.Join(person)()
	failing := make(chan error)
	// Ends with the answer.
	go func() { failing <- n.decide(t.Context(), "h.example", []uint16{443}) }()
	r := <-person.asked
	must.Do(t, b.journal.Close())
	b.resolve(t, r.ID, approval.Verdict{Approve: true, By: "ann"})
	for _, err := range []error{<-failing, n.decide(t.Context(), "h.example", []uint16{443})} {
		if err == nil || !strings.Contains(err.Error(), "cannot be journalled") {
			t.Errorf("got %v", err)
		}
	}
	if told := decisions(n.call); len(told) > 0 {
		t.Errorf("told %q", told)
	}
}

func TestDecisionsOnConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	_, n := contacting(t)
	for i := range maxDecisions { // journalled already
		n.reported[decisionKey{port: i}] = &decisionRecord{written: true}
	}
	for _, host := range []string{"a.good.example", "x.bad.example"} {
		if err := n.decide(t.Context(), host, []uint16{443}); err == nil || !strings.Contains(err.Error(), "Split it") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if slices.ContainsFunc(n.call.Events(0), func(e any) bool { _, ok := e.(message.ConnectionDecision); return ok }) {
		t.Error("decisions beyond the bound are told")
	}
}
