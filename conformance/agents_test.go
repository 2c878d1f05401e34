//go:build linux

package conformance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/message"
)

// stock is an agent as its makers publish it, set up as docs/connect.md says, with a home of
// its own, a scripted model on loopback, and a daemon.
type stock interface {
	base() *agentRig
	// call is what its model calls to do a step; why says that it has no such.
	call(deed) (do move, why string)
	// lost is what its model sees of a command when the daemon is killed, and of a call
	// without a daemon.
	lost() (killed, without []string)
	// play has it go on to the end of its model's script. When interrupt is closed its user
	// interrupts it.
	play(t *testing.T, interrupt <-chan struct{})
}

// agentRig is a daemon with a person, and an agent's model.
type agentRig struct {
	codexRig
	model *model
}

func newAgentRig(t *testing.T) *agentRig {
	t.Helper()
	return &agentRig{newCodexRig(t), newModel(t)}
}

func (r *agentRig) base() *agentRig { return r }

func (r *agentRig) file(name string) string { return filepath.Join(r.site.workspace, name) }

func (r *agentRig) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(r.file(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *agentRig) exists(name string) bool {
	_, err := os.Stat(r.file(name))
	return err == nil
}

// command calls toold so that it finds the daemon of the rig.
func (r *agentRig) command() []string {
	return []string{r.program, "--state-dir", r.site.state, "--config", r.site.config}
}

// recorded checks that the journal has a call and its return.
func (r *agentRig) recorded(t *testing.T, id string) {
	t.Helper()
	list, err := r.dial(client.Options{}).ListMessages(t.Context(), message.ListMessages{CallID: id, Limit: 5})
	if err != nil || len(list.Messages) != 2 {
		t.Errorf("of %q the journal has %s, %v", id, list.Messages, err)
	}
}

// environment lets an agent reach what is on loopback only: there is no such proxy.
func environment(home string, more ...string) []string {
	const nowhere = "http://127.0.0.1:1"
	return append([]string{
		"HTTPS_PROXY=" + nowhere, "HTTP_PROXY=" + nowhere, "ALL_PROXY=" + nowhere, "NO_PROXY=127.0.0.1,localhost",
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8",
	}, more...)
}

// person answers what is asked: no to what would make the file "made", and yes, after a
// while, to all else.
func (r *agentRig) person(t *testing.T) {
	t.Helper()
	after := 3 * time.Second
	if text := os.Getenv("TOOLD_APPROVE_AFTER"); text != "" {
		var err error
		if after, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		_ = r.approver.Approvals(t.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) {
			yes := !strings.Contains(string(q.ToolCall.Arguments), "made")
			if yes && suite.Sleep(t.Context(), after) != nil {
				return
			}
			if _, err := r.approver.Decide(t.Context(), client.Decision{ApprovalID: q.ID, Approve: yes, Reason: "make no directories"}); err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		}})
	}()
}

// deed is one thing that a model does.
type deed struct {
	run        string // a command
	background string // one that goes on
	follow     bool   // look after that
	edit       *edit
	subagent   bool
	await      bool // its end
}

type edit struct{ name, from, to string }

// cell is a deed of every agent, and what its model sees of it.
type cell struct {
	name string
	do   deed
	sees []string
}

// cells are played one after another.
func cells() []cell {
	return []cell{
		{"a command", deed{run: "echo one; echo two >&2; exit 3"}, []string{"one", "two", "3"}},
		{"denied", deed{run: "touch made; git push origin main"}, []string{"no-push", "use a branch"}},
		{"approved after a while", deed{run: "mkdir yes && echo it is there"}, []string{"it is there"}},
		{"refused by a person", deed{run: "mkdir made"}, []string{"make no directories"}},
		{"a file edit", deed{edit: &edit{"hello.txt", "hello", "bye"}}, nil},
		{"a denied file edit", deed{edit: &edit{".env", "SECRET", "x"}}, []string{"secrets"}},
		{"1 MB of output", deed{run: "yes x | head -c 1000000; echo the end"}, []string{"the end"}},
		{"in the background", deed{background: "echo begun; read -r line; echo got $line; sleep 1000"}, nil},
		{"followed in the background", deed{follow: true}, []string{"got"}},
		{"a subagent", deed{subagent: true}, nil},
		{"the end of a subagent", deed{await: true}, nil},
	}
}

// ofSubagent is what a subagent does.
func ofSubagent() []cell {
	return []cell{
		{"a command", deed{run: "echo from the subagent"}, []string{"from the subagent"}},
		{"denied", deed{run: "touch made; git push origin main"}, []string{"no-push", "use a branch"}},
	}
}

// TestAgents plays the same cases with all agents.
func TestAgents(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T) stock{
		"codex":  func(t *testing.T) stock { return newCodex(t) },
		"claude": func(t *testing.T) stock { return newClaude(t) },
		"letta":  func(t *testing.T) stock { return newLetta(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := begin(t)
			a.base().person(t)
			playCells(t, a)
			playInterrupted(t, a)
			playKilled(t, a)
		})
	}
}

// moves are the calls for cells; those that an agent has none for are skipped.
func moves(t *testing.T, a stock, of []cell) (list []move, played []cell) {
	for _, c := range of {
		do, why := a.call(c.do)
		if why != "" {
			t.Run(c.name, func(t *testing.T) { t.Skip(why) })
			continue
		}
		list, played = append(list, do), append(played, c)
	}
	return list, played
}

func playCells(t *testing.T, a stock) {
	r := a.base()
	r.write(t, "hello.txt", "hello\n")
	r.write(t, ".env", "SECRET\n")
	list, played := moves(t, a, cells())
	subs, playedBySub := moves(t, a, ofSubagent())
	r.model.script(list, subs)
	a.play(t, nil)
	for i, c := range played {
		t.Run(c.name, func(t *testing.T) {
			r.model.contains(t, false, i+1, c.sees)
			if !c.do.subagent {
				return
			}
			for i, c := range playedBySub {
				r.model.contains(t, true, i+1, c.sees)
			}
			id, _ := r.model.saw(true, 1)
			r.recorded(t, id)
		})
	}
	r.nothingMade()
	for name, want := range map[string]string{"hello.txt": "bye\n", ".env": "SECRET\n"} {
		if text, err := os.ReadFile(r.file(name)); string(text) != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	id, _ := r.model.saw(false, 1)
	r.recorded(t, id)
}

// long begins a command that runs until it is ended. begun is closed when it runs.
func (r *agentRig) long(t *testing.T, a stock) (do move, begun chan struct{}) {
	do, _ = a.call(deed{run: "touch started; sleep 1000; touch made"})
	begun = make(chan struct{})
	go func() {
		for suite.Sleep(t.Context(), 20*time.Millisecond) == nil {
			if os.Remove(r.file("started")) == nil {
				close(begun)
				return
			}
		}
	}()
	return do, begun
}

// When its user interrupts an agent, the command ends.
func playInterrupted(t *testing.T, a stock) {
	t.Run("interrupted", func(t *testing.T) {
		r := a.base()
		agent := r.dial(client.Options{})
		running := func() int {
			calls, err := agent.ListCalls(t.Context(), "", false)
			if err != nil {
				t.Fatal(err)
			}
			return len(calls)
		}
		before := running()
		do, begun := r.long(t, a)
		r.model.script([]move{do}, nil)
		a.play(t, begun)
		eventually(t, "the command ends", func() bool { return running() <= before })
		r.nothingMade()
	})
}

// When the daemon is killed the command ends; and without one nothing runs.
func playKilled(t *testing.T, a stock) {
	r := a.base()
	touch, _ := a.call(deed{run: "touch made"})
	change, _ := a.call(deed{edit: &edit{"made", "", "x"}})
	t.Run("the daemon is killed", func(t *testing.T) {
		do, begun := r.long(t, a)
		killed, played := make(chan error, 1), make(chan struct{})
		go func() {
			select {
			case <-begun:
				killed <- r.daemon.stop(syscall.SIGKILL)
			case <-played:
				killed <- errors.New("the command never began")
			}
		}()
		r.model.script([]move{do, touch}, nil)
		a.play(t, nil)
		close(played)
		t.Logf("the daemon ended with %v", <-killed)
		r.nothingMade()
		killedSees, without := a.lost()
		r.model.expect(t, killedSees, without)
	})
	t.Run("no daemon", func(t *testing.T) {
		r.model.script([]move{touch, change}, nil)
		a.play(t, nil)
		r.nothingMade()
		_, without := a.lost()
		r.model.expect(t, without, without)
	})
}

// wrongToken has the agent's programs find a token that is none, until the test ends.
func (r *agentRig) wrongToken(t *testing.T) {
	t.Helper()
	path := filepath.Join(r.site.state, "tokens", "agent")
	right, err := os.ReadFile(path)
	if err = errors.Join(err, os.WriteFile(path, []byte("wrong\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.daemon.tokens["agent"] = "wrong"
	t.Cleanup(func() {
		r.daemon.tokens["agent"] = strings.TrimSpace(string(right))
		if err := os.WriteFile(path, right, 0o600); err != nil {
			t.Error(err)
		}
	})
}

// skipWithout skips a test whose agent is not named by a variable.
func skipWithout(t testing.TB, variable, what string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s does not name %s: see .ci/agents", variable, what)
	}
	return path
}
