package console

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/client"
	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
)

// AskPerson asks until the answer is clear: no; yes, with a scope or an escalation; or another command. The end of
// the input means no.
func AskPerson(in *bufio.Reader, out io.Writer, r message.ApprovalRequest) client.Decision {
	flags := describe.WideningFlags(r.MayWiden)
	escalate := ""
	if len(flags) > 0 {
		escalate = "[w]iden its sandbox for this once, "
	}
	for {
		dropTyped(in, out)
		fmt.Fprintf(out, "Run it? [y]es once, %s%s[n]o; to give the agent a reason, yes: WHY or no: WHY: ", choices(r), escalate)
		line, err := in.ReadString('\n')
		if err != nil {
			return client.Decision{Reason: "the terminal was closed"}
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		word, explained := strings.CutSuffix(word, ":")
		bare := explained || rest == ""
		if d, ok := parseRemember(word, rest, r); ok && (bare || d.Reason == "") {
			return d
		}
		d := client.Decision{Reason: strings.TrimSpace(rest)}
		yes, ok := yesOrNo(word)
		switch word = strings.ToLower(word); {
		case ok && yes && !bare: // a pasted command, such as yes | head
			fmt.Fprintf(out, "More than %q is no yes; with a reason it is yes: WHY.\n", display.Short(word))
		case ok:
			d.Approve = yes
			return d
		case len(flags) == 0 || !widens(word):
			fmt.Fprintf(out, "%q is neither yes nor no.\n", display.Short(word))
		default:
			if d.Widen, d.Approve = askWidening(in, out, flags); d.Approve {
				return d
			}
		}
	}
}

func widens(word string) bool { return word == "w" || word == "widen" }

func yesOrNo(word string) (yes, ok bool) {
	switch strings.ToLower(word) {
	case "y", "yes", "a", "allow":
		return true, true
	case "n", "no", "d", "deny":
		return false, true
	}
	return false, false
}

// dropTyped discards input that was typed or pasted before a question was shown.
func dropTyped(in *bufio.Reader, out io.Writer) {
	if tty, ok := out.(*os.File); ok {
		executor.DropInput(tty)
		_, _ = in.Discard(in.Buffered())
	}
}

// askWidening reads an escalation, which must be confirmed.
func askWidening(in *bufio.Reader, out io.Writer, flags []string) (w message.Widening, confirmed bool) {
	for {
		dropTyped(in, out)
		fmt.Fprintf(out, "  It may be given %s.\n  Give it (nothing goes back): ", strings.Join(flags, ", "))
		line, err := in.ReadString('\n')
		if err != nil || strings.TrimSpace(line) == "" {
			return message.Widening{}, false
		}
		if w, err = parseWidening(line); err == nil {
			break
		}
		fmt.Fprintf(out, "  %s\n", display.Short(err.Error()))
	}
	for {
		dropTyped(in, out)
		fmt.Fprintf(out, "  Then, for this one call:\n%s  Sure? [y]es, [n]o: ", describe.Bullets(w.Lines()))
		line, err := in.ReadString('\n')
		yes, ok := yesOrNo(strings.TrimSpace(line))
		if ok && yes {
			return w, true
		}
		if ok || err != nil {
			return message.Widening{}, false
		}
	}
}

// scopes maps the words for the scope of a yes to its name.
var scopes = map[string]string{
	"c": "conversation", "conversation": "conversation",
	"o": "command", "command": "command",
	"p": "prefix", "prefix": "prefix",
	"r": "rule", "rule": "rule",
}

func answersMore(word string) bool { return scopes[strings.ToLower(word)] != "" || edits(word) }

func edits(word string) bool { return slices.Contains([]string{"e", "edit"}, strings.ToLower(word)) }

// parseRemember parses an answer that applies to more than one call or edits the command. ok is false for other
// answers, and for what the request does not offer.
func parseRemember(word, rest string, r message.ApprovalRequest) (d client.Decision, ok bool) {
	word, rest = strings.ToLower(word), strings.TrimSpace(rest)
	if edits(word) {
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
	if command == "" || !utf8.ValidString(command) {
		return nil, false
	}
	var arguments map[string]json.RawMessage
	if json.Unmarshal(r.ToolCall.Arguments, &arguments) != nil || arguments["command"] == nil {
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

// AnswerFlags are the flags of approve for an answer that applies to more than one call, or to another one.
type AnswerFlags struct{ Remember, Pattern, Command, Arguments string }

// Add adds the flags to a decision about one of the waiting calls. Only Command uses the waiting calls.
func (f AnswerFlags) Add(d *client.Decision, waiting []message.ApprovalRequest) error {
	if f.Remember != "" && f.Remember != "once" && scopes[f.Remember] != f.Remember {
		return fmt.Errorf("--remember %q: expected once, conversation, command, prefix or rule", f.Remember)
	}
	if d.Remember, d.Pattern = f.Remember, f.Pattern; (f.Remember == "rule") != (f.Pattern != "") {
		return errors.New("--remember rule and --pattern go together")
	}
	if f.Arguments != "" {
		if d.Arguments = json.RawMessage(f.Arguments); f.Command != "" || !json.Valid(d.Arguments) {
			return errors.New("--arguments is the arguments as JSON, without --command")
		}
	}
	if f.Command == "" {
		return nil
	}
	for _, r := range waiting {
		if r.Named(d.ApprovalID) {
			if edited, ok := editedArguments(r, f.Command); ok {
				d.Arguments = edited
				return nil
			}
		}
	}
	return fmt.Errorf("no call with a command waits under %s", d.ApprovalID)
}

// WideningFields returns pointers to the fields of w by the names of their flags.
func WideningFields(w *message.Widening) map[string]*string {
	return map[string]*string{"profile": &w.Profile, "write": &w.Write, "network": &w.Network, "host": &w.Host}
}

func parseWidening(line string) (w message.Widening, err error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for name, field := range WideningFields(&w) {
		flags.StringVar(field, name, "", "")
	}
	err = flags.Parse(strings.Fields(line))
	switch {
	case err != nil:
		return message.Widening{}, err
	case flags.NArg() > 0 || w == message.Widening{}:
		return message.Widening{}, errors.New("say it as it is written above, or nothing to leave it")
	}
	return w, CheckWidening(w)
}

// CheckWidening returns an error for words that no configuration could allow.
func CheckWidening(w message.Widening) error {
	if w.Write != "" && !filepath.IsAbs(w.Write) {
		return fmt.Errorf("--write %q: expected an absolute path", w.Write)
	}
	return errors.Join(
		OneOf("--profile", w.Profile, sandbox.WorkspaceWrite.String(), sandbox.FullAccess.String()),
		OneOf("--network", w.Network, escalation.Proxy.String(), escalation.Full.String()),
	)
}
