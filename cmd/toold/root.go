package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
)

// stdio is the program's three standard files. Standard output carries data
// only; everything else goes to standard error.
type stdio struct{ in, out, err *os.File }

// Exit codes of plain commands. A call's exit code is its command's, or one of
// those in call.go.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitConfig      = 3 // configuration or policy is invalid
	exitUnreachable = 4 // no daemon answers
	exitNotPending  = 5 // nobody waits for that answer
	exitInterrupted = 130
)

// exitError ends the program with a code. A nil err says that everything has
// been said already.
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

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, std stdio) int {
	root := newRoot(std)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var coded *exitError
	if !errors.As(err, &coded) {
		coded = &exitError{exitUsage, err}
	}
	if coded.err != nil {
		fmt.Fprintf(std.err, "toold: %v\n", coded.err)
	}
	return coded.code
}

// global is what every subcommand shares.
type global struct {
	std     stdio
	options config.Options
	json    bool
}

func newRoot(std stdio) *cobra.Command {
	g := &global{std: std}
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
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	flags := root.PersistentFlags()
	flags.StringVar(&g.options.Path, "config", "", "configuration `file` (TOOLD_CONFIG)")
	flags.StringVarP(&g.options.Workspace, "workspace", "C", "", "`folder` that calls may change; default: the current one (TOOLD_WORKSPACE)")
	flags.StringVar(&g.options.Policy, "policy", "", "policy `file` (TOOLD_POLICY)")
	flags.StringVar(&g.options.StateDir, "state-dir", "", "`folder` of journal and tokens (TOOLD_STATE_DIR)")
	flags.StringVar(&g.options.Listen, "listen", "", "`host:port` to serve on or to reach (TOOLD_LISTEN)")
	flags.StringVar(&g.options.LogLevel, "log-level", "", "least `level` that is logged: debug, info, warn or error (TOOLD_LOG_LEVEL)")
	flags.BoolVar(&g.json, "json", false, "print JSON for programs")

	serve := serveCommand(g)
	root.RunE = serve.RunE
	root.AddCommand(serve, callCommand(g), callsCommand(g), showCommand(g), outputCommand(g), cancelCommand(g), approvalsCommand(g), approveCommand(g), denyCommand(g),
		policyCommand(g), reloadCommand(g), doctorCommand(g), quarantineCommand(g), tokenCommand(g), schemaCommand(g), versionCommand(g))
	return root
}

// inspect is load for what runs no call.
func (g *global) inspect() (config.Config, error) {
	looking := *g
	looking.options.Inspect = true
	return looking.load()
}

// load reads the configuration and prints its warnings.
func (g *global) load() (config.Config, error) {
	cfg, err := config.Load(g.options)
	if err != nil {
		return cfg, &exitError{exitConfig, err}
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(g.std.err, "toold: warning:", w)
	}
	return cfg, nil
}
