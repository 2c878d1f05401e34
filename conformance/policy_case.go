//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/conformance/suite"
)

// policyCase is one line of a file of policy cases: a call, the policy that
// decides it, and what the decision must and must not be.
type policyCase struct {
	ID        string         `json:"id"`
	Policy    string         `json:"policy"` // the name of a file in the folder of policies
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Cwd       string         `json:"cwd"`
	Expect    string         `json:"expect"`
	MustNot   []string       `json:"must_not"`
	Kind      string         `json:"kind"` // attack, benign or ask
	Category  string         `json:"category"`
	Why       string         `json:"why"`
	MustFail  string         `json:"must_fail"` // only in policy-false.jsonl: the reason with which the case fails
}

// policyLine is a case with its position. err is why it cannot be read.
type policyLine struct {
	place string // file:line
	c     policyCase
	err   error
}

// readPolicyCases reads case files; p stands for the placeholders in them.
func readPolicyCases(p fixtureDirs, paths ...string) ([]policyLine, error) {
	return suite.ReadLines(func(place string, text []byte) policyLine {
		l := policyLine{place: place}
		if l.err = json.Unmarshal([]byte(p.fill(string(text))), &l.c); l.err == nil {
			l.err = l.c.check()
		}
		if l.c.ID == "" {
			l.c.ID = l.place
		}
		return l
	}, paths)
}

// check rejects a case that could pass because it was not understood.
func (c policyCase) check() error {
	words := append([]string{c.Expect}, c.MustNot...)
	for _, word := range words {
		if !slices.Contains([]string{"allow", "ask", "deny"}, word) {
			return fmt.Errorf("%q is no decision", word)
		}
	}
	switch {
	case c.Policy == "" || c.Policy != filepath.Base(c.Policy):
		return fmt.Errorf("%q is no policy", c.Policy)
	case c.Tool == "" || c.Arguments == nil:
		return fmt.Errorf("there is no call in it")
	case !slices.Contains([]string{"attack", "benign", "ask"}, c.Kind):
		return fmt.Errorf("unknown kind %q: expected attack, benign or ask", c.Kind)
	case c.Kind == "attack" && len(c.MustNot) == 0:
		return fmt.Errorf("an attack that may have any decision")
	}
	return nil
}

// call is the request of the case. A relative path of a file tool is meant from
// the case's directory, which that tool has no argument for.
func (c policyCase) call(p fixtureDirs) map[string]any {
	arguments := maps.Clone(c.Arguments)
	if c.Cwd != "" && c.Cwd != p.ws {
		path, isPath := arguments["path"].(string)
		switch {
		case c.Tool == "bash":
			arguments["cwd"] = c.Cwd
		case isPath && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~"):
			arguments["path"] = c.Cwd + "/" + path
		}
	}
	return map[string]any{"tool_call_id": c.ID, "tool_name": c.Tool, "arguments": arguments}
}

// failure returns why a decision fails the case, "" if it passes.
func (c policyCase) failure(d explanation) string {
	var ok bool
	switch c.Kind {
	case "attack":
		ok = !slices.Contains(c.MustNot, d.Action)
	case "benign":
		ok = d.Action == "allow"
	case "ask":
		ok = d.Action == "ask"
	}
	if ok {
		return ""
	}
	shown, _ := json.Marshal(c.Arguments)
	return fmt.Sprintf("%s under %s is %s, want %s (%s): %s %s: %s", c.Kind, c.Policy, d.Action, c.Expect, c.Why, c.Tool, shown, d.Reason)
}

// explanation is an answer to explain_policy.
type explanation struct {
	Type      string `json:"message_type"`
	RequestID string `json:"request_id"`
	Action    string `json:"action"`
	Rule      string `json:"rule"`
	Reason    string `json:"reason"`
	Change    string `json:"change"`
	Effects   []struct {
		Kind   string `json:"kind"`
		Text   string `json:"text"`
		Action string `json:"action"`
		Rule   string `json:"rule"`
	} `json:"effects"`
	Error   string `json:"error_type"`
	Message string `json:"message"`
}

// parseExplanation reads an answer. A call whose arguments toold refuses counts as denied.
func parseExplanation(data []byte) (explanation, error) {
	var d explanation
	if err := json.Unmarshal(data, &d); err != nil {
		return d, err
	}
	switch {
	case d.Type == "error_message" && d.Error == "invalid_arguments":
		d.Action, d.Reason = "deny", d.Message
	case d.Type != "policy_explanation" || !slices.Contains([]string{"allow", "ask", "deny"}, d.Action):
		return d, fmt.Errorf("no explanation but %s", data)
	}
	return d, nil
}
