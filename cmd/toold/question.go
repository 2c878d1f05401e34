package main

import (
	"fmt"
	"strings"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
)

// question is what a waiting call would do, for the person who decides. An agent wrote it: hidden
// characters are shown, and every line is indented, so that nothing looks like toold's own words.
func question(r message.ApprovalRequest, indent string) string {
	text := display.Visible(r.Preview.Text)
	if r.Preview.Diff != "" {
		text += "\n" + display.Visible(strings.TrimSuffix(r.Preview.Diff, "\n"))
	}
	var b strings.Builder
	b.WriteString(indent + strings.ReplaceAll(text, "\n", "\n"+indent) + "\n")
	for _, e := range r.Effects {
		fmt.Fprintf(&b, "%s- %s", indent, oneLine(e.Text))
		if e.Kind == "read" && e.Source == "cwd" { // a program may be called cwd
			b.WriteString(" (the folder it runs in)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// oneLine is text that an agent had a part in, on one line.
func oneLine(s string) string { return display.Line(s) }

// asker says who asks for a call and why. The client chose all of it but the token's name.
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
