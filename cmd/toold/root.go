package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/spell"
	"github.com/toold/toold/message"
)

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, c console.Console) int {
	g := &global{Console: c}
	root := newRoot(g)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	coded := &console.ExitError{Code: console.ExitFailed, Err: err}
	var wrong *daemon.ConfigurationError
	switch {
	case errors.As(err, &coded):
	case errors.As(err, &wrong):
		coded.Code = console.ExitConfig
	case !g.understood:
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			err = unknown(cmd, words[0])
		}
		coded = &console.ExitError{Code: console.ExitUsage, Err: fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	}
	if coded.Err != nil {
		_ = console.Show(c.Err, fmt.Sprintf("toold: %s\n", display.Visible(coded.Err.Error()))) // the exit code reports it
	}
	return coded.Code
}

// global is the state that all commands share.
type global struct {
	console.Console
	options config.Options
	as      string // token for calls; "" = the first with the role agent

	understood bool          // the command line was parsed
	below      console.Below // path of the current directory in a discovered workspace; "" = the root
}

func newRoot(g *global) *cobra.Command {
	root := &cobra.Command{
		Use:           "toold",
		Short:         "Run an agent's tool calls under a policy, in a sandbox, on the record",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentPreRun = func(*cobra.Command, []string) { g.understood = true }
	root.SetIn(g.In)
	root.SetOut(g.Out)
	root.SetErr(g.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return console.FlagError(cmd.UseLine(), err) })
	flags := root.PersistentFlags()
	flags.StringVar(&g.options.Path, "config", "", "configuration `file` (TOOLD_CONFIG)")
	flags.StringVarP(&g.options.Workspace, "workspace", "C", "", "`directory` that calls may change; default: the registered workspace or the git repository that contains the current one, else that itself (TOOLD_WORKSPACE)")
	flags.StringVar(&g.options.Policy, "policy", "", "policy `file` (TOOLD_POLICY)")
	flags.StringVar(&g.options.StateDir, "state-dir", "", "`directory` of journal and tokens (TOOLD_STATE_DIR)")
	flags.StringVar(&g.options.Listen, "listen", "", "`host:port` to serve on or to reach (TOOLD_LISTEN)")
	flags.StringVar(&g.options.LogLevel, "log-level", "", "least `level` that is logged: debug, info, warn or error (TOOLD_LOG_LEVEL)")
	flags.BoolVar(&g.JSON, "json", false, "print JSON for programs")

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
	for flag, words := range map[string]string{
		"log --decision": "allow ask deny asked", "log --tool": strings.Join(operandTools(), " "), "policy init --for": "go node python", "output --stream": "stdout stderr combined",
		"call --terminal": "split single off", "exec --terminal": "split single off", "approve --remember": "once conversation command prefix rule",
		"approve --profile": "workspace-write danger-full-access", "approve --network": "proxy full",
	} {
		path, name, _ := strings.Cut(flag, " --")
		cmd, _, _ := root.Find(strings.Fields(path))
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(strings.Fields(words), cobra.ShellCompDirectiveNoFileComp)) // it exists
	}
	addHelp(root)
	root.Version = version
	root.SetVersionTemplate(versionText())
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if !cmd.Runnable() { // a group of commands
			cmd.Args, cmd.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

//go:embed help.txt
var help string

// addHelp sets the long help of a command and its subcommands from help.txt.
func addHelp(cmd *cobra.Command) {
	if _, text, ok := strings.Cut(help, "-- "+cmd.CommandPath()+" --\n"); ok {
		text, _, _ = strings.Cut(text, "\n-- ")
		cmd.Long = strings.TrimSuffix(text, "\n")
	}
	for _, below := range cmd.Commands() {
		addHelp(below)
	}
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Print the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = unknown(cmd, rest[0])
			}
			if err != nil {
				return console.Usage(fmt.Errorf("%w; see toold --help", err))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// one accepts exactly one nonempty operand.
func one(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return notEmpty(cmd, args)
	}
	return fmt.Errorf("one operand is wanted, got %d: %s", len(args), cmd.UseLine())
}

// optional accepts up to one operand.
func optional(cmd *cobra.Command, args []string) error {
	return cobra.MatchAll(cobra.MaximumNArgs(1), notEmpty)(cmd, args)
}

func notEmpty(cmd *cobra.Command, args []string) error {
	if slices.Contains(args, "") {
		return fmt.Errorf("an operand is empty: %s", cmd.UseLine())
	}
	return nil
}

// unknown is the error about a word that is no command below cmd. It names those that may be meant.
func unknown(cmd *cobra.Command, word string) error {
	names, paths := []string{}, map[string][]string{}
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			for _, name := range append([]string{below.Name()}, below.SuggestFor...) {
				names, paths[name] = append(names, name), append(paths[name], below.CommandPath())
			}
			add(below)
		}
	}
	add(cmd)
	near := spell.Nearest(word, names)
	if near == "" {
		return fmt.Errorf("unknown command %q for %q", word, cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q for %q (did you mean %s?)", word, cmd.CommandPath(), strings.Join(paths[near], " or "))
}

// load loads the configuration for running calls, inspect for deciding on calls.
func (g *global) load() (config.Config, error)    { return g.loadFor(config.RunCalls) }
func (g *global) inspect() (config.Config, error) { return g.loadFor(config.JudgeCalls) }

// remote loads the configuration for commands about a daemon. It works in any directory.
func (g *global) remote() (config.Config, error) { return g.loadFor(config.ReachDaemon) }

// remotely returns a RunE function that loads the configuration with remote and passes it to do.
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
		return cfg, console.Exit(console.ExitConfig, err)
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(g.Err, "toold: warning:", w)
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
			return g.Data(string(text))
		},
	}
}

const version = "0.1.0-dev"

func versionCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			revision, date := built()
			return g.Print(map[string]any{
				"version": version, "protocol": daemon.Protocol, "go": runtime.Version(),
				"os": runtime.GOOS, "arch": runtime.GOARCH, "revision": revision, "date": date,
			}, versionText())
		},
	}
}

func versionText() string {
	revision, date := built()
	return strings.TrimSpace(fmt.Sprintf("toold %s %s/%s %s %s", version, runtime.GOOS, runtime.GOARCH, revision, date)) + "\n"
}

// built returns the commit of this binary and its date.
func built() (revision, date string) {
	revision = "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return revision, ""
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.time":
			date = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return revision + dirty, date
}

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func (g *global) completed(ids func(context.Context, *client.Client) []string) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Second)
		defer cancel()
		c, err := g.dial(ctx, "approver")
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		return ids(ctx, c), cobra.ShellCompDirectiveNoFileComp
	}
}

func questions(ctx context.Context, c *client.Client) (ids []string) {
	list, _ := c.ListApprovals(ctx) // no completion after an error
	for _, r := range list {
		ids = append(ids, r.ID+"\t"+display.Short(r.Preview.Text))
	}
	return ids
}

func calls(ended bool) func(context.Context, *client.Client) []string {
	return func(ctx context.Context, c *client.Client) (ids []string) {
		list, _ := c.ListCalls(ctx, "", ended)
		for _, i := range list {
			ids = append(ids, display.Short(i.CallID)+"\t"+describe.CallState(i)+" "+display.Short(i.Preview))
		}
		return ids
	}
}

func toolNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return operandTools(), cobra.ShellCompDirectiveNoFileComp
}
