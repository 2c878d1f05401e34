package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

func execCommand(g *global) *cobra.Command {
	c := &callRun{global: g}
	cmd := &cobra.Command{
		Use: "exec [flags] [--] COMMAND [ARGUMENT...]", Short: "Run a command as a bash call, its words as they are",
		Long: "Runs a command under the policy and in the sandbox, as toold call bash does. Its words are\n" +
			"not read by a shell again: toold exec -- echo '$HOME' prints $HOME. The exit codes are those\n" +
			"of toold call.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, []string{"bash", quoted(args)}) },
	}
	c.flags.registerBash(cmd)
	c.register(cmd)
	cmd.Flags().SetInterspersed(false) // flags behind COMMAND are its own
	return cmd
}

// plain are words that mean themselves to a shell, wherever they stand; program are
// those that do where a command begins, if they are none of the reserved ones.
var (
	plain    = regexp.MustCompile(`^[A-Za-z0-9_./:,@%+-][A-Za-z0-9_./:,@%+=-]*$`)
	program  = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)
	reserved = regexp.MustCompile(`^(case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while)$`)
)

// quoted is a command line of which a shell makes exactly these words.
func quoted(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		bare := plain.MatchString(w) && (i > 0 || program.MatchString(w) && !reserved.MatchString(w))
		if line[i] = w; !bare {
			line[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(line, " ")
}
