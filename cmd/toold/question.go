package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
)

const mostEffects = 50

// question describes a waiting call. An agent wrote it: nothing imitates toold or moves the cursor.
func question(r message.ApprovalRequest, indent string) string {
	var b strings.Builder
	for _, text := range []string{r.Preview.Text, strings.TrimSuffix(r.Preview.Diff, "\n")} {
		if text != "" {
			b.WriteString(display.Quote(text, indent, "toold show "+oneLine(r.CallID)+" prints them"))
		}
	}
	for n, e := range r.Effects {
		if n == mostEffects {
			fmt.Fprintf(&b, "%s(%d more effects are not shown)\n", indent, len(r.Effects)-n)
			break
		}
		fmt.Fprintf(&b, "%s- %s", indent, oneLine(e.Text))
		if e.Kind == "read" && e.Source == "cwd" { // a program may be called cwd
			b.WriteString(" (the folder it runs in)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// oneLine shows text of an agent on one bounded line.
func oneLine(s string) string { return display.Short(s) }

// asker describes the caller, who chose all but the token's name.
func asker(a message.Asker, indent string) string {
	who := []string{"from " + oneLine(a.Client)}
	if p := a.Program; p != nil {
		who = append(who, "program "+oneLine(strings.TrimSpace(p.Name+" "+p.Version)))
	}
	if a.AgentID != "" {
		who = append(who, "agent "+oneLine(a.AgentID))
	}
	if a.ConversationID != "" {
		who = append(who, "conversation "+oneLine(a.ConversationID))
	}
	text := indent + strings.Join(who, ", ") + "\n"
	if a.Description != "" {
		text += indent + "description: " + oneLine(a.Description) + "\n"
	}
	if a.Justification != "" {
		text += indent + "justification: " + oneLine(a.Justification) + "\n"
	}
	return text
}

func wideningFlags(may *message.MayWiden) (flags []string) {
	if may == nil {
		return nil
	}
	for _, list := range []struct {
		flag   string
		values []string
		each   string // after each value
	}{
		{"--profile", may.Profile, ""},
		{"--write", may.Write, " or a folder in it"},
		{"--network", may.Network, ""},
		{"--host", may.Host, ""},
	} {
		for _, value := range list.values {
			if list.flag == "--host" && value == "*" {
				value = "NAME"
			}
			flags = append(flags, list.flag+" "+oneLine(value)+list.each)
		}
	}
	return flags
}

func addWideningFlags(cmd *cobra.Command, w *message.Widening) {
	flags := cmd.Flags()
	flags.StringVar(&w.Profile, "profile", "", "run it in a wider `profile`: workspace-write or danger-full-access")
	flags.StringVar(&w.Write, "write", "", "let it write in a `folder`, given by its absolute path")
	flags.StringVar(&w.Network, "network", "", "give it a wider `network`: proxy or full")
	flags.StringVar(&w.Host, "host", "", "let it contact a `host`: a name or an address, with :port or without")
}

func parseWidening(line string) (w message.Widening, err error) {
	cmd := &cobra.Command{}
	addWideningFlags(cmd, &w)
	err = cmd.ParseFlags(strings.Fields(line))
	switch {
	case err != nil:
		return message.Widening{}, err
	case cmd.Flags().NArg() > 0 || w == message.Widening{}:
		return message.Widening{}, errors.New("say it as it is written above, or nothing to leave it")
	}
	return w, checkWidening(w)
}

func checkWidening(w message.Widening) error {
	if w.Write != "" && !filepath.IsAbs(w.Write) {
		return fmt.Errorf("--write %q: expected an absolute path", w.Write)
	}
	return errors.Join(
		oneOf("--profile", w.Profile, sandbox.WorkspaceWrite.String(), sandbox.FullAccess.String()),
		oneOf("--network", w.Network, escalation.Proxy.String(), escalation.Full.String()),
	)
}

func bullets(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "  - %s\n", oneLine(line))
	}
	return b.String()
}

// scopes are the words for what a yes may count for.
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

// remembering reads an answer for more than one call or with a change; ok is false for others and for what is not
// offered.
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
