// Package console shows calls, their output and their questions to people, and reads the answers. Since others wrote
// much of what it shows, no such text reaches a terminal as control sequences or can be mistaken for toold's own.
package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
)

// Console prints for a person or, with JSON, for a program. Out receives only data.
type Console struct {
	In, Out, Err *os.File
	JSON         bool
}

// Print prints v as JSON if JSON is set, otherwise text.
func (c Console) Print(v any, text string) error {
	if c.JSON {
		return c.Emit(v)
	}
	return c.Show(text)
}

// List prints v as JSON if JSON is set, otherwise its rows in columns, or none if there are no rows.
func (c Console) List(v any, rows [][]string, none string) error {
	if c.JSON {
		return c.Emit(v)
	}
	if len(rows) == 0 {
		fmt.Fprintln(c.Err, none)
		return nil
	}
	return c.Columns(rows)
}

// cellText keeps a cell, such as the name of a file, from making cells and rows of its own.
var cellText = strings.NewReplacer("\n", `\n`, "\t", `\t`)

// Columns prints rows in aligned columns.
func (c Console) Columns(rows [][]string) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cellText.Replace(cell)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush()
	return c.Show(text.String())
}

// Show prints text to Out.
func (c Console) Show(text string) error { return Show(c.Out, text) }

// Show prints text that may contain parts by others. It passes only colours to a terminal, and marks the continuation
// of long lines so that they cannot be mistaken for lines of their own.
func Show(f *os.File, text string) error {
	p := NewPrinter(f, false)
	if s, ok := p.Writer.(*display.Screen); ok {
		s.Width = display.Columns(f)
	}
	_, err := p.Write([]byte(text))
	p.Close()
	if err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	return nil
}

// Done reports what was done: as JSON on Out if JSON is set, otherwise as text on Err.
func (c Console) Done(v map[string]any, text string) error {
	if c.JSON {
		return c.Emit(v)
	}
	fmt.Fprintln(c.Err, text)
	return nil
}

// Emit prints v as JSON.
func (c Console) Emit(v any) error {
	line, err := message.Encode(v)
	if err != nil {
		return err
	}
	return c.Data(display.JSON(string(line)))
}

// Data prints a line for programs unchanged, also on a terminal.
func (c Console) Data(text string) error {
	if _, err := io.WriteString(c.Out, text+"\n"); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	return nil
}

// Printer writes the output of a call.
type Printer struct{ io.Writer }

// NewPrinter returns a Printer that filters escape sequences on a terminal, unless raw.
func NewPrinter(f *os.File, raw bool) Printer {
	if raw || !executor.IsTerminal(f) {
		return Printer{f}
	}
	return Printer{display.NewScreen(f)}
}

// Close resets colours.
func (p Printer) Close() {
	if s, ok := p.Writer.(*display.Screen); ok {
		_ = s.Close()
	}
}

// Piped reports whether f is a pipe, a socket or a file: neither a terminal nor /dev/null.
func Piped(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeCharDevice|os.ModeDir) == 0
}

// Unread reports whether f is Piped and has data that was not read.
func Unread(f *os.File) bool { return Piped(f) && executor.Unread(f) }

// FlagError says in plain words what is wrong with a flag of a command with a usage line.
func FlagError(usage string, err error) error {
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		which, _, _ := strings.Cut(err.Error(), ": strconv.")
		return fmt.Errorf("%s: expected %s", which, wanted(number))
	}
	switch {
	case !strings.HasPrefix(err.Error(), "unknown "):
	case strings.HasPrefix(usage, "toold call "):
		return fmt.Errorf("%w; if it is one of the command, quote that: toold call bash 'ls -la'", err)
	case strings.Contains(usage, "-- COMMAND"), strings.Contains(usage, "[--] COMMAND"):
		return fmt.Errorf("%w; if it is one of COMMAND, put -- before that", err)
	}
	return err
}

func wanted(err *strconv.NumError) string {
	switch {
	case err.Func == "ParseBool":
		return "true or false"
	case errors.Is(err, strconv.ErrRange):
		return "a number of fewer digits"
	}
	return "a whole number"
}

// OneOf rejects a word of a flag that is not known; "" is the absence of the flag.
func OneOf(flag, word string, known ...string) error {
	if word == "" || slices.Contains(known, word) {
		return nil
	}
	last := len(known) - 1
	return fmt.Errorf("%s %q: expected %s or %s", flag, word, strings.Join(known[:last], ", "), known[last])
}

// Exit codes of commands. For the command call see ExitCode.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitConfig      = 3 // or the policy
	ExitUnreachable = 4
	ExitNotPending  = 5
	ExitTampered    = 6
	ExitInterrupted = 130
)

// ExitError ends the program with Code. If Err is nil, nothing is printed.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit returns an *ExitError.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Unreachable returns err with ExitUnreachable, unless it already has a code.
func Unreachable(err error) error {
	var known *ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return Exit(known.Code, err)
	}
	return Exit(ExitUnreachable, err)
}

// Usage returns err with ExitUsage.
func Usage(err error) error { return Exit(ExitUsage, err) }

// Exit codes of call, as in timeout(1), env(1) and shells.
const (
	ExitTimedOut = 124
	ExitNotRun   = 125 // toold could not run it
	ExitDenied   = 126
)

// ExitCode returns the exit code of toold call for a return.
func ExitCode(ret message.ToolReturn) int {
	if ret.ErrorType != nil {
		switch *ret.ErrorType {
		case message.Denied, message.ApprovalTimeout:
			return ExitDenied
		case message.Timeout, message.InputNeeded:
			return ExitTimedOut
		case message.Cancelled:
			return ExitInterrupted
		case message.ProtectedPath: // it ran
		case message.InvalidArguments, message.UnknownTool:
			if ret.Decision != nil {
				return ExitFailed // the arguments were understood, but do not fit the files
			}
			return ExitUsage
		default:
			return ExitNotRun
		}
	}
	switch {
	case ret.ExitCode != nil:
		return *ret.ExitCode
	case ret.Status != "success":
		return ExitFailed
	}
	return 0
}
