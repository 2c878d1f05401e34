//go:build linux

package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheChangeThatADecisionNamesComesTrue makes the change that toold names for
// every case that is not allowed, in the text of the policy file, and asks again:
// the whole call must be allowed. Where toold says that no change of the policy helps,
// it must say why.
func TestTheChangeThatADecisionNamesComesTrue(t *testing.T) {
	t.Parallel()
	runner := startPolicyRunner(t)
	cases, err := readPolicyCases(runner.fixtureDirs, namedFiles("TOOLD_CASES_POLICY", "policy.jsonl")...)
	if err != nil {
		t.Fatal(err)
	}
	made, none, refused := 0, map[string]int{}, 0
	for l := range sampled(cases) {
		d, why := runner.run(t.Context(), l)
		switch reason, isNone := strings.CutPrefix(d.Change, "none in the policy: "); {
		case l.err != nil || d.Action == "" || d.Action == "allow":
			continue
		case d.Error != "":
			refused++ // its arguments are wrong, whatever the policy
		case isNone && len(reason) > 20:
			none[reason]++
		case isNone || d.Change == "":
			t.Errorf("%s is %s by %s, and nothing is said of a change: %q %s", l.c.ID, d.Action, d.Rule, d.Change, why)
		default:
			made++
			if why := runner.changed(t.Context(), l, d); why != "" {
				t.Errorf("%s is %s by %s; %s: %s", l.c.ID, d.Action, d.Rule, d.Change, why)
			}
		}
	}
	if made == 0 {
		t.Error("no case names a change that can be made")
	}
	t.Logf("%d changes were made and came true; %d calls are refused for their arguments; no change helps:", made, refused)
	for reason, n := range none {
		t.Logf("%4d  %s", n, reason)
	}
}

// changed makes the change that a decision names, asks again, and undoes it. It
// tells how the promise was broken, "" if it was kept.
func (c *policyRunner) changed(ctx context.Context, l policyLine, before explanation) string {
	file := filepath.Join(c.base, l.c.Policy, "policy.yaml")
	old, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	changed, err := withChange(string(old), before)
	if err != nil {
		return err.Error()
	}
	accepted := c.follow(ctx, l.c.Policy, file, changed)
	after, why := c.run(ctx, l)
	if err := errors.Join(accepted, c.follow(ctx, l.c.Policy, file, string(old))); err != nil {
		return err.Error()
	}
	if after.Action != "allow" {
		return fmt.Sprintf("the call is then %s: %+v (%s)", after.Action, after.Effects, why)
	}
	return ""
}

// follow writes a policy and makes its daemon take it up.
func (c *policyRunner) follow(ctx context.Context, policy, file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d := c.daemons[policy].daemon
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.http+"/v1/reload", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+d.tokens["approver"])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		return fmt.Errorf("the policy with the change is not accepted: %s", body)
	}
	return nil
}

// The parts of a change, as toold writes them. A list is one of quoted texts.
const quotedList = `\[((?:"(?:[^"\\]|\\.)*"(?:, )?)*)\]`

var (
	newRule    = regexp.MustCompile(`^under (commands|paths|net): (\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})`)
	exception  = regexp.MustCompile(`^an exception in rule "([^"]*)": except: ` + quotedList)
	switchOff  = regexp.MustCompile(`^builtin: \{disable: ` + quotedList + `\}, which takes the whole of a built-in rule away`)
	variable   = regexp.MustCompile(`^env: \{allow: ` + quotedList + `\}`)
	inMap      = regexp.MustCompile(`^(defaults|unknown_paths|env): \{(\w+): (ask|allow)\}`)
	consequent = "; then it is allowed"
)

// withChange makes the change that a decision names in the text of a policy.
func withChange(text string, d explanation) (string, error) {
	rest := d.Change
	for {
		var m []string
		take := func(r *regexp.Regexp) bool {
			if m = r.FindStringSubmatch(rest); m != nil {
				rest = rest[len(m[0]):]
			}
			return m != nil
		}
		switch {
		case take(newRule):
			text = inSection(text, m[1], "  - "+m[2])
		case take(exception):
			text = inRule(text, m[1], "except", m[2])
		case take(switchOff):
			text = setKey(text, "builtin", "disable", "["+m[1]+"]")
		case take(variable):
			text = setKey(text, "env", "allow", "["+m[1]+"]")
		case take(inMap):
			text = setKey(text, m[1], m[2], m[3])
		default:
			return "", fmt.Errorf("cannot read %q", rest)
		}
		if rest == consequent {
			return text, nil
		}
		if !strings.HasPrefix(rest, "; and ") {
			return "", fmt.Errorf("cannot read %q", rest)
		}
		rest = strings.TrimPrefix(rest, "; and ")
	}
}

// inSection adds a rule to a list of the file, or the list.
func inSection(text, section, rule string) string {
	if head := "\n" + section + ":\n"; strings.Contains(text, head) {
		return strings.Replace(text, head, head+rule+"\n", 1)
	}
	return text + "\n" + section + ":\n" + rule + "\n"
}

// inRule adds to a list in a rule that is written over several lines.
func inRule(text, id, key, texts string) string {
	head := "  - id: " + id + "\n"
	before, after, _ := strings.Cut(text, head)
	own, others, more := strings.Cut(after, "\n  - ")
	if list := "    " + key + ": ["; strings.Contains(own, list) {
		own = strings.Replace(own, list, list+texts+", ", 1)
	} else {
		own = list + texts + "]\n" + own
	}
	if more {
		own += "\n  - "
	}
	return before + head + own + others
}

// setKey sets a key of a map that is written on one line, or adds to a list there.
func setKey(text, section, key, value string) string {
	line := regexp.MustCompile(`(?m)^` + section + `: \{(.*)\}`)
	m := line.FindStringSubmatch(text)
	if m == nil {
		return text + "\n" + section + ": {" + key + ": " + value + "}\n"
	}
	inner := m[1]
	switch list := strings.Trim(value, "[]"); {
	case strings.Contains(inner, key+": ["):
		inner = strings.Replace(inner, key+": [", key+": ["+list+", ", 1)
	case strings.Contains(inner, key+": "):
		inner = regexp.MustCompile(key+`: \w+`).ReplaceAllString(inner, key+": "+value)
	default:
		inner += ", " + key + ": " + value
	}
	return strings.Replace(text, m[0], section+": {"+inner+"}", 1)
}
