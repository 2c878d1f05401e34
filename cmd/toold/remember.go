package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// scopes are the words and letters for what a yes may count for.
var scopes = map[string]string{
	"c": "conversation", "conversation": "conversation",
	"o": "command", "command": "command",
	"p": "prefix", "prefix": "prefix",
	"r": "rule", "rule": "rule",
}

func suggestionsText(list []message.Suggestion, indent string) string {
	var b strings.Builder
	if len(list) > 0 {
		b.WriteString(indent + "a yes may also be remembered:\n")
		indent += "  "
	}
	for _, s := range list {
		if s.Remember == "conversation" {
			fmt.Fprintf(&b, "%sconversation: remembers it for this conversation, until the daemon ends\n", indent)
			continue
		}
		fmt.Fprintf(&b, "%s%s: writes into your policy\n", indent, oneLine(s.Remember))
		for _, line := range []struct {
			head  string
			texts []string
		}{{"", s.Changes}, {"would also have allowed: ", s.WouldAllow}, {"WOULD ALLOW, THOUGH REFUSED: ", s.AllowsRefused}, {"would not allow: ", s.WouldNotAllow}} {
			for _, text := range line.texts {
				fmt.Fprintf(&b, "%s  %s%s\n", strings.Repeat(" ", len(indent)), line.head, oneLine(text))
			}
		}
	}
	return b.String()
}

// remembering reads an answer that is to count for more than its call, or to change it:
// a scope, "rule" with a pattern, or "edit" with a command. ok is false for other words,
// and for what the question does not offer.
func remembering(word, rest string, r message.ApprovalRequest) (d client.Decision, ok bool) {
	word, rest = strings.ToLower(word), strings.TrimSpace(rest)
	if word == "e" || word == "edit" {
		d.Arguments, ok = editedArguments(r, rest)
		d.Approve = ok
		return d, ok
	}
	scope := scopes[word]
	offered := slices.ContainsFunc(r.Suggestions, func(s message.Suggestion) bool {
		return s.Remember == scope || scope == "rule" && s.Remember == "command"
	})
	switch {
	case !offered || scope == "rule" && rest == "":
		return client.Decision{}, false
	case scope == "rule":
		return client.Decision{Approve: true, Remember: scope, Pattern: rest}, true
	}
	return client.Decision{Approve: true, Remember: scope, Reason: rest}, true
}

func editedArguments(r message.ApprovalRequest, command string) (json.RawMessage, bool) {
	var arguments map[string]json.RawMessage
	if json.Unmarshal(r.ToolCall.Arguments, &arguments) != nil || arguments["command"] == nil || command == "" {
		return nil, false
	}
	text, err := json.Marshal(command)
	if err != nil {
		return nil, false
	}
	arguments["command"] = text
	edited, err := json.Marshal(arguments)
	return edited, err == nil
}

func choices(r message.ApprovalRequest) string {
	var b strings.Builder
	for _, s := range r.Suggestions {
		b.WriteString(map[string]string{"conversation": "[c]onversation, ", "command": "c[o]mmand, [r]ule PATTERN, ", "prefix": "[p]refix, "}[s.Remember])
	}
	if _, ok := editedArguments(r, "x"); ok {
		b.WriteString("[e]dit COMMAND, ")
	}
	return b.String()
}

type answerFlags struct{ remember, pattern, command, arguments string }

func (f answerFlags) add(d *client.Decision, waiting []message.ApprovalRequest) error {
	if f.remember != "" && f.remember != "once" && scopes[f.remember] != f.remember {
		return fmt.Errorf("--remember %q: expected once, conversation, command, prefix or rule", f.remember)
	}
	if d.Remember, d.Pattern = f.remember, f.pattern; (f.remember == "rule") != (f.pattern != "") {
		return errors.New("--remember rule and --pattern go together")
	}
	if f.arguments != "" {
		if d.Arguments = json.RawMessage(f.arguments); f.command != "" || !json.Valid(d.Arguments) {
			return errors.New("--arguments is the arguments as JSON, without --command")
		}
	}
	if f.command == "" {
		return nil
	}
	for _, r := range waiting {
		if r.Named(d.ApprovalID) {
			if edited, ok := editedArguments(r, f.command); ok {
				d.Arguments = edited
				return nil
			}
		}
	}
	return fmt.Errorf("no call with a command waits under %s", d.ApprovalID)
}
