package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/widen"
)

func wideningFlags(may *message.MayWiden) (flags []string) {
	if may == nil {
		return nil
	}
	for _, list := range []struct {
		flag   string
		values []string
		each   string // of the values, what may stand instead
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

// parseWidening reads the same flags from a line that a person has typed.
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

// checkWidening rejects words that no configuration could allow.
func checkWidening(w message.Widening) error {
	if w.Write != "" && !filepath.IsAbs(w.Write) {
		return fmt.Errorf("--write %q: expected an absolute path", w.Write)
	}
	return errors.Join(
		oneOf("--profile", w.Profile, sandbox.WorkspaceWrite.String(), sandbox.FullAccess.String()),
		oneOf("--network", w.Network, widen.Proxy.String(), widen.Full.String()),
	)
}

func bullets(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "  - %s\n", oneLine(line))
	}
	return b.String()
}
