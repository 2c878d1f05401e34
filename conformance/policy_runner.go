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

// court decides cases: one daemon for each policy, all on one tree of files.
type court struct {
	places
	program  string
	base     string // for what is not part of the tree
	policies string // the directory of policies
	judges   map[string]*judge
}

// openCourt builds the tree of a fixture below base. Its daemons start when a case needs them.
func openCourt(ctx context.Context, program, base, fixture, policies string) (*court, error) {
	c := &court{program: program, base: filepath.Join(base, "daemons"), policies: policies, judges: map[string]*judge{}}
	tree := filepath.Join(base, "tree")
	err := errors.Join(os.Mkdir(c.base, 0o700), os.Mkdir(tree, 0o755))
	if err == nil {
		c.places, err = buildTree(ctx, tree, fixture)
	}
	return c, err
}

// close ends the daemons.
func (c *court) close() (err error) {
	for _, j := range c.judges {
		if j.conn != nil {
			j.conn.hangUp()
		}
		err = errors.Join(err, j.daemon.stop(syscall.SIGTERM))
	}
	return err
}

// try plays one case and returns why it failed, "" if it passed.
func (c *court) try(ctx context.Context, l policyLine) (explained, string) {
	if l.err != nil {
		return explained{}, fmt.Sprintf("%s: cannot read the case: %v", l.place, l.err)
	}
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
	if j, ok := c.judges[policy]; ok && j.conn != nil {
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
	j := &judge{daemon: d, answers: make(chan []byte, 16)}
	c.judges[policy] = j
	j.conn, err = dial(ctx, d, "approver", 0, d.tokens["approver"], j.received, func() {})
	return j, err
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
