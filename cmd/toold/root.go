package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
)

// stdio has the standard files. Only data goes to out.
type stdio struct{ in, out, err *os.File }

// Exit codes of all commands but call.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3 // or the policy
	exitUnreachable = 4
	exitNotPending  = 5
	exitTampered    = 6
	exitInterrupted = 130
)

// exitError ends the program with a code. A nil err prints nothing.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, std stdio) int {
	g := &global{std: std}
	root := newRoot(g)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	coded := &exitError{exitFailed, err}
	var wrong *daemon.ConfigurationError
	switch {
	case errors.As(err, &coded):
	case errors.As(err, &wrong):
		coded.code = exitConfig
	case !g.understood:
		coded = &exitError{exitUsage, fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	}
	if coded.err != nil {
		_ = show(std.err, fmt.Sprintf("toold: %s\n", display.Visible(coded.err.Error())))
	}
	return coded.code
}

// global is shared by all commands.
type global struct {
	std     stdio
	options config.Options
	json    bool
	as      string // "" = the first with the role agent

	understood bool   // the command line
	below      string // in a discovered workspace
}

func newRoot(g *global) *cobra.Command {
	root := &cobra.Command{
		Use:   "toold",
		Short: "Run an agent's tool calls under a policy, in a sandbox, on the record",
		Long: "toold receives tool calls over WebSocket, judges them by a policy (allow, ask, deny),\n" +
			"asks a person where the policy says so, runs them in a sandbox, streams their output\n" +
			"and answers each call exactly once. Without a subcommand it serves.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentPreRun = func(*cobra.Command, []string) { g.understood = true }
	root.SetIn(g.std.in)
	root.SetOut(g.std.out)
	root.SetErr(g.std.err)
	flags := root.PersistentFlags()
	flags.StringVar(&g.options.Path, "config", "", "configuration `file` (TOOLD_CONFIG)")
	flags.StringVarP(&g.options.Workspace, "workspace", "C", "", "`directory` that calls may change; default: the registered workspace or the git repository that contains the current one, else that itself (TOOLD_WORKSPACE)")
	flags.StringVar(&g.options.Policy, "policy", "", "policy `file` (TOOLD_POLICY)")
	flags.StringVar(&g.options.StateDir, "state-dir", "", "`directory` of journal and tokens (TOOLD_STATE_DIR)")
	flags.StringVar(&g.options.Listen, "listen", "", "`host:port` to serve on or to reach (TOOLD_LISTEN)")
	flags.StringVar(&g.options.LogLevel, "log-level", "", "least `level` that is logged: debug, info, warn or error (TOOLD_LOG_LEVEL)")
	flags.BoolVar(&g.json, "json", false, "print JSON for programs")

	serve := serveCommand(g)
	root.RunE = serve.RunE
	root.AddCommand(serve, connectCommand(g), upCommand(g), downCommand(g), callCommand(g), execCommand(g), callsCommand(g), logCommand(g), showCommand(g), auditCommand(g), journalCommand(g), outputCommand(g), cancelCommand(g), watchCommand(g), approvalsCommand(g), approveCommand(g), denyCommand(g),
		policyCommand(g), reloadCommand(g), configCommand(g), doctorCommand(g), quarantineCommand(g), workspacesCommand(g), tokenCommand(g), mcpCommand(g), lettaCommand(g), hookCommand(g), packagingCommand(), schemaCommand(g, "Print the JSON Schema of every frame of the protocol", message.Schema), versionCommand(g))
	for name, complete := range map[string]completion{
		"call": toolNames, "approve": g.completed(questions), "deny": g.completed(questions),
		"cancel": g.completed(calls(false)), "output": g.completed(calls(true)), "show": g.completed(calls(true)),
	} {
		cmd, _, _ := root.Find([]string{name})
		cmd.ValidArgsFunction = complete
	}
	root.Version = version
	root.SetVersionTemplate(versionText())
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if !cmd.Runnable() { // it only groups others
			cmd.Args, cmd.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Print the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("unknown command %q for %q", rest[0], cmd.CommandPath())
			}
			if err != nil {
				return &exitError{exitUsage, fmt.Errorf("%w; see toold --help", err)}
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

func one(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("one operand is wanted, got %d: %s", len(args), cmd.UseLine())
}

func (g *global) print(v any, text string) error {
	if g.json {
		return g.emit(v)
	}
	return g.out(text)
}

// list prints v as JSON, or its rows in columns, or none.
func (g *global) list(v any, rows [][]string, none string) error {
	if g.json {
		return g.emit(v)
	}
	if len(rows) == 0 {
		fmt.Fprintln(g.std.err, none)
		return nil
	}
	return g.columns(rows)
}

func (g *global) columns(rows [][]string) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush()
	return g.out(text.String())
}

func (g *global) out(text string) error { return show(g.std.out, text) }

// show makes untrusted text safe for a terminal.
func show(f *os.File, text string) error {
	p := newPrinter(f, false)
	if s, ok := p.Writer.(*display.Screen); ok {
		s.Width = display.Columns(f)
	}
	_, err := p.Write([]byte(text))
	p.close()
	if err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	return nil
}

func (g *global) done(v map[string]any, text string) error {
	if g.json {
		return g.emit(v)
	}
	fmt.Fprintln(g.std.err, text)
	return nil
}

func (g *global) emit(v any) error {
	line, err := message.Encode(v)
	if err != nil {
		return err
	}
	return g.data(display.JSON(string(line)))
}

func (g *global) data(text string) error {
	if _, err := io.WriteString(g.std.out, text+"\n"); err != nil {
		return fmt.Errorf("cannot print: %w", err)
	}
	return nil
}

func (g *global) load() (config.Config, error)    { return g.loadFor(config.RunCalls) }
func (g *global) inspect() (config.Config, error) { return g.loadFor(config.JudgeCalls) }

func (g *global) remote() (config.Config, error) { return g.loadFor(config.ReachDaemon) }

func (g *global) remotely(do func(context.Context, config.Config, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := g.remote()
		if err != nil {
			return err
		}
		return do(cmd.Context(), cfg, args)
	}
}

func (g *global) readConfig(options config.Options) (config.Config, error) {
	options.Discover = g.discover
	return config.Load(options)
}

func (g *global) loadFor(purpose config.Purpose) (config.Config, error) {
	options := g.options
	options.For = purpose
	cfg, err := g.readConfig(options)
	if err != nil {
		return cfg, &exitError{exitConfig, err}
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(g.std.err, "toold: warning:", w)
	}
	return cfg, nil
}

func schemaCommand(g *global, short string, schema func() ([]byte, error)) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: short, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := schema()
			if err != nil {
				return err
			}
			return g.data(string(text))
		},
	}
}
