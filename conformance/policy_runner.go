//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

// policyRunner plays policy cases on one daemon for each policy, all on one tree of files.
type policyRunner struct {
	fixtureDirs
	program  string
	base     string // directory of what is not part of the tree
	policies string // the directory of policies
	daemons  map[string]*policyDaemon
}

// newPolicyRunner builds the tree of a fixture below base. Its daemons start when a case needs them.
func newPolicyRunner(ctx context.Context, program, base, fixture, policies string) (*policyRunner, error) {
	c := &policyRunner{program: program, base: filepath.Join(base, "daemons"), policies: policies, daemons: map[string]*policyDaemon{}}
	tree := filepath.Join(base, "tree")
	err := errors.Join(os.Mkdir(c.base, 0o700), os.Mkdir(tree, 0o755))
	if err == nil {
		c.fixtureDirs, err = buildTree(ctx, tree, fixture)
	}
	return c, err
}

// close ends the daemons.
func (c *policyRunner) close() (err error) {
	for _, j := range c.daemons {
		if j.conn != nil {
			j.conn.close()
		}
		err = errors.Join(err, j.daemon.stop(syscall.SIGTERM))
	}
	return err
}

// run plays one case and returns why it failed, "" if it passed.
func (c *policyRunner) run(ctx context.Context, l policyLine) (explanation, string) {
	if l.err != nil {
		return explanation{}, fmt.Sprintf("%s: cannot read the case: %v", l.place, l.err)
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	j, err := c.daemonFor(limit, l.c.Policy)
	if err != nil {
		return explanation{}, fmt.Sprintf("%s: %v", l.place, err)
	}
	d, err := j.explain(limit, l.c.call(c.fixtureDirs))
	if err != nil {
		return d, fmt.Sprintf("%s: %v", l.place, err)
	}
	return d, l.c.failure(d)
}

// policyDaemon is a daemon with one policy.
type policyDaemon struct {
	daemon   *daemon
	conn     *conn
	answers  chan []byte
	requests int
}

// daemonFor returns the daemon of a policy, started at the first case.
func (c *policyRunner) daemonFor(ctx context.Context, policy string) (*policyDaemon, error) {
	if j, ok := c.daemons[policy]; ok && j.conn != nil {
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
	j := &policyDaemon{daemon: d, answers: make(chan []byte, 16)}
	c.daemons[policy] = j
	j.conn, err = dial(ctx, d, "approver", 0, d.tokens["approver"], j.receive, func() {})
	return j, err
}

// site writes the policy with its placeholders filled in, and a configuration
// that names it.
func (c *policyRunner) site(policy string) (*site, error) {
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

// receive keeps the answers; other frames are not about explain_policy.
func (j *policyDaemon) receive(_ *conn, _ int, data []byte) {
	var head struct {
		RequestID string `json:"request_id"`
	}
	if json.Unmarshal(data, &head) == nil && head.RequestID != "" {
		j.answers <- data
	}
}

// explain asks how a call would be decided.
func (j *policyDaemon) explain(ctx context.Context, call map[string]any) (explanation, error) {
	j.requests++
	id := fmt.Sprint("case-", j.requests)
	frame, err := json.Marshal(map[string]any{"message_type": "explain_policy", "request_id": id, "call": call})
	if err != nil {
		return explanation{}, err
	}
	if err := j.conn.send(websocket.TextMessage, frame); err != nil {
		return explanation{}, err
	}
	for {
		select {
		case data := <-j.answers:
			if d, err := parseExplanation(data); err != nil || d.RequestID == id {
				return d, err
			}
		case <-j.conn.ended:
			return explanation{}, errors.New("the daemon closed the connection")
		case <-ctx.Done():
			return explanation{}, errors.New("no answer in time")
		}
	}
}
