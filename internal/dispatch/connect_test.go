package dispatch

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// connecting is a bench whose call contacts hosts, under a policy about hosts.
func connecting(t *testing.T, listed string, hosts ...string) (b *bench, answers map[string]string) {
	t.Helper()
	answers = map[string]string{}
	b = newBench(t, policy.Allow, &probe{run: func(ctx context.Context, io tools.IO) tools.Result {
		for _, host := range hosts {
			answers[host] = ""
			if err := io.Connect(ctx, host, []uint16{80, 443}); err != nil {
				answers[host] = err.Error()
			}
		}
		return tools.Result{Text: "done"}
	}})
	b.tool.does = policy.Effect{Kind: policy.Net, Host: "judged.example", Port: 443, Scheme: "https"}
	b.workspace.opt.Listed = func(host string, port uint16) bool { return host == listed && port == 443 }
	rules := compiled(t, policy.File{
		Name: "test", Defaults: policy.Defaults{Net: policy.Ask},
		Net: []policy.Rule{
			{ID: "good", Action: policy.Allow, Hosts: []string{"*.good.example", "judged.example"}, Schemes: []string{"https"}},
			{ID: "bad", Action: policy.Deny, Hosts: []string{"*.bad.example"}},
			{ID: "careful", Action: policy.Ask, Hosts: []string{"ask.example"}},
		},
	})
	b.SetPolicy(rules)
	return b, answers
}

// decisions are what a call told of its connections.
func decisions(c *Call) (list []string) {
	for _, e := range c.Events(0) {
		if d, ok := e.(message.ConnectionDecision); ok {
			list = append(list, d.Host+" "+d.Action+" "+d.By+" "+d.Rule)
		}
	}
	return list
}

func TestEachConnectionIsJudgedToldAndJournalled(t *testing.T) {
	t.Parallel()
	b, answers := connecting(t, "listed.example",
		"a.good.example", "a.good.example", "x.bad.example", "listed.example", "judged.example", "ask.example", "other.example")
	w, wake := b.submit("c1", `{}`)
	if f := final(t, w, wake); f.Return.Status != "success" {
		t.Fatalf("got %+v", f.Return)
	}
	want := []string{
		"a.good.example allow policy good", "x.bad.example deny policy bad",
		"listed.example allow policy sandbox.egress.allow", "judged.example allow policy good",
		"ask.example deny policy careful", "other.example deny policy defaults.net",
	}
	must.Match(t, want, decisions(w.Call()))
	for host, text := range map[string]string{
		"a.good.example": "", "listed.example": "", "judged.example": "",
		"x.bad.example": "denied by rule bad", "ask.example": "no approver is connected", "other.example": "no approver is connected",
	} {
		if !strings.Contains(answers[host], text) || text == "" && answers[host] != "" {
			t.Errorf("%s: %q, want %q", host, answers[host], text)
		}
	}
	page := must.Get(b.journal.List(t.Context(), journal.Query{}))(t)
	n := 0
	for _, m := range page.Messages {
		if m.Type == "connection_decision" && m.CallID == "c1" {
			n++
		}
	}
	if n != len(want) {
		t.Errorf("%d decisions are journalled, want %d", n, len(want))
	}
}

// A list of the configuration does not outweigh a rule.
func TestARuleThatAsksBindsListedHosts(t *testing.T) {
	t.Parallel()
	b, answers := connecting(t, "ask.example", "ask.example")
	w, wake := b.submit("c1", `{}`)
	final(t, w, wake)
	if !strings.Contains(answers["ask.example"], "no approver") {
		t.Errorf("got %q", answers["ask.example"])
	}
}

func TestAPersonDecidesOnAHostOnce(t *testing.T) {
	t.Parallel()
	b, answers := connecting(t, "", "new.example", "new.example", "no.example", "no.example")
	person := newHesitant()
	leave := b.approvals.Join(person)
	defer leave()
	var answering sync.WaitGroup
	// Ends with the second question.
	answering.Go(func() {
		for range 2 {
			r := <-person.asked
			_ = b.approvals.Resolve(r.ID, approval.Verdict{Approve: r.Show.Effects[0].Text == "contact new.example:80", By: "ann", Reason: "because"})
		}
	})
	w, wake := b.submit("c1", `{}`)
	final(t, w, wake)
	answering.Wait()
	want := []string{"new.example allow person defaults.net", "no.example deny person defaults.net"}
	must.Match(t, want, decisions(w.Call()))
	if answers["new.example"] != "" || !strings.Contains(answers["no.example"], "denied by a person (ann)") {
		t.Errorf("got %q", answers)
	}
}

func TestAQuestionAboutAHostEndsWithTheCall(t *testing.T) {
	t.Parallel()
	b, answers := connecting(t, "", "new.example")
	person := newHesitant()
	leave := b.approvals.Join(person)
	defer leave()
	w, wake := b.submit("c1", `{}`)
	<-person.asked
	w.Call().Cancel("enough")
	final(t, w, wake)
	if answers["new.example"] == "" || len(decisions(w.Call())) != 0 {
		t.Errorf("got %q, %q", answers, decisions(w.Call()))
	}
}

// A connection outlives a policy that would ask about its host, and ends with one that
// denies it.
func TestAPolicyThatDeniesAHostRevokesItsConnections(t *testing.T) {
	t.Parallel()
	b, n := contacting(t)
	must.Do(t, n.decide(t.Context(), "a.good.example", []uint16{443}))
	ended := make(chan error)
	// Ends with the last policy.
	go func() { ended <- n.revoked(t.Context(), "a.good.example", 443) }()
	for _, action := range []policy.Action{policy.Ask, policy.Deny} {
		rules := compiled(t, policy.File{
			Name: "test", Net: []policy.Rule{{ID: "later", Action: action, Hosts: []string{"*.good.example"}}},
		})
		b.SetPolicy(rules)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "later") {
		t.Errorf("got %v", err)
	}
	want := []string{"a.good.example allow policy good", "a.good.example deny policy later"}
	must.Match(t, want, decisions(n.call))
}
