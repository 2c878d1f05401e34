package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
)

func configCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check the configuration"}
	cmd.AddCommand(&cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration file as a daemon that starts here would", Args: cobra.MaximumNArgs(1),
		Long: "Reads the configuration that holds, or FILE, together with TOOLD_ variables and flags. A\n" +
			"fault is shown with its place and ends with exit code 3; warnings do not change the exit code.",
		RunE: func(_ *cobra.Command, args []string) error { return g.checkConfig(args) },
	})
	return cmd
}

type checkedConfig struct {
	Config   string          `json:"config"` // empty: there is no file
	Warnings []string        `json:"warnings"`
	Faults   []*config.Error `json:"faults,omitempty"`
}

func (g *global) checkConfig(files []string) error {
	options := g.options
	if len(files) == 1 {
		options.Path = files[0]
	}
	cfg, err := g.readConfig(options)
	if err != nil {
		if g.json {
			g.emit(checkedConfig{Config: options.Path, Warnings: []string{}, Faults: faultsOf(err)})
		}
		return &exitError{exitConfig, err}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", cmp.Or(cfg.File, "no file; the defaults hold"), count(len(cfg.Warnings), "warning"))
	for _, w := range cfg.Warnings {
		fmt.Fprintf(&text, "warning: %s\n", oneLine(w))
	}
	return g.print(checkedConfig{Config: cfg.File, Warnings: append([]string{}, cfg.Warnings...)}, text.String())
}
