package describe

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
)

const maxEffects = 50

// Question describes a call that awaits approval. An agent wrote the call, so its text is escaped.
func Question(r message.ApprovalRequest, indent string) string {
	var b strings.Builder
	for _, text := range []string{r.Preview.Text, strings.TrimSuffix(r.Preview.Diff, "\n")} {
		if text != "" {
			b.WriteString(display.Quote(text, indent, "toold show "+display.Operand(r.CallID)+" prints them"))
		}
	}
	for n, e := range r.Effects {
		if n == maxEffects {
			fmt.Fprintf(&b, "%s(%d more effects are not shown)\n", indent, len(r.Effects)-n)
			break
		}
		fmt.Fprintf(&b, "%s- %s", indent, display.Short(e.Text))
		if e.Kind == "read" && e.Source == "cwd" { // a program may be called cwd
			b.WriteString(" (the folder it runs in)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Asker describes the caller, who chose everything except the token's name.
func Asker(a message.Asker, indent string) string {
	who := []string{"from " + display.Short(a.Client)}
	if p := a.Program; p != nil {
		who = append(who, "program "+one(strings.TrimSpace(p.Name+" "+p.Version)))
	}
	if a.AgentID != "" {
		who = append(who, "agent "+one(a.AgentID))
	}
	if a.ConversationID != "" {
		who = append(who, "conversation "+one(a.ConversationID))
	}
	text := indent + strings.Join(who, ", ") + "\n"
	if a.Description != "" {
		text += indent + "description: " + display.Short(a.Description) + "\n"
	}
	if a.Justification != "" {
		text += indent + "justification: " + display.Short(a.Justification) + "\n"
	}
	return text
}

// one returns a name, quoted if it could be mistaken for several in a list.
func one(name string) string {
	if strings.ContainsAny(name, `,"`) {
		name = strconv.Quote(name)
	}
	return display.Short(name)
}

// WideningFlags returns the flags of approve that a question allows.
func WideningFlags(may *message.MayWiden) (flags []string) {
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
			flags = append(flags, list.flag+" "+display.Short(value)+list.each)
		}
	}
	return flags
}

// Bullets returns a list with one line for each item.
func Bullets(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "  - %s\n", display.Short(line))
	}
	return b.String()
}

// Suggestions lists the rules as which an answer may be remembered.
func Suggestions(list []message.Suggestion, indent string) string {
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
		fmt.Fprintf(&b, "%s%s: writes into your policy\n", indent, display.Short(s.Remember))
		for _, line := range []struct {
			head  string
			texts []string
		}{{"", s.Changes}, {"would also have allowed: ", s.WouldAllow}, {"would also have allowed what a person refused: ", s.AllowsRefused}, {"would not allow: ", s.WouldNotAllow}} {
			for _, text := range line.texts {
				fmt.Fprintf(&b, "%s  %s%s\n", strings.Repeat(" ", len(indent)), line.head, display.Short(text))
			}
		}
	}
	return b.String()
}

// Asked describes a question without its id.
func Asked(r message.ApprovalRequest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", display.Short(r.ToolCall.ToolName), untilText(r.ExpiresAt))
	b.WriteString(Asker(r.Asker, "    ") + place(r, "    "))
	fmt.Fprintf(&b, "%s    %s asks: %s\n", Question(r, "    "), display.Short(r.Rule), display.Short(r.Reason))
	if flags := WideningFlags(r.MayWiden); len(flags) > 0 {
		fmt.Fprintf(&b, "    approve may widen its sandbox: %s\n", strings.Join(flags, ", "))
	}
	b.WriteString(Suggestions(r.Suggestions, "    "))
	return b.String()
}

// Resolved describes the answer to a question.
func Resolved(r message.ApprovalResolved) string {
	word := "denied"
	if r.Approve {
		word = "approved"
	}
	switch unanswered := r.By == "cancelled" || r.By == "deadline"; {
	case unanswered && !r.Approve:
		word = "not answered"
	case r.By != "":
		word += " by " + r.By
	}
	if r.Widened != nil {
		word += ", widened for this call: " + r.Widened.String()
	}
	if r.Reason != "" {
		word += ": " + r.Reason
	}
	return word
}

func untilText(expires string) string {
	at, err := time.Parse(time.RFC3339Nano, expires)
	if err != nil {
		return "expires " + expires
	}
	return fmt.Sprintf("expires in %d s", int(time.Until(at).Seconds()))
}

// FormQuestion describes a call for a form or a page.
func FormQuestion(r message.ApprovalRequest) string {
	return fmt.Sprintf("%s asks: %s\n%s%s", display.Short(r.Rule), display.Short(r.Reason), Question(r, "  "), place(r, "  "))
}

// place says where the call works; older daemons do not send that.
func place(r message.ApprovalRequest, indent string) string {
	switch {
	case r.Workspace == "":
		return ""
	case r.Cwd == "" || r.Cwd == r.Workspace:
		return indent + "in " + display.Short(r.Workspace) + "\n"
	}
	return indent + "in " + display.Short(r.Cwd) + ", workspace " + display.Short(r.Workspace) + "\n"
}
