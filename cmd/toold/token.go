package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func tokenCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Show the tokens with which clients connect"}
	cmd.AddCommand(&cobra.Command{
		Use: "show [NAME]", Short: "Print a token (default: agent)", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := g.remote()
			if err != nil {
				return err
			}
			name := "agent"
			if len(args) == 1 {
				name = args[0]
			}
			return g.showToken(tokenFiles(cfg), name)
		},
	})
	return cmd
}

func (g *global) showToken(files map[string]string, name string) error {
	file, ok := files[name]
	if !ok {
		names := slices.Sorted(maps.Keys(files))
		return &exitError{exitUsage, fmt.Errorf("no token is called %q in the configuration; there are %s", name, strings.Join(names, ", "))}
	}
	secret, err := readToken(file)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	return g.print(map[string]string{"name": name, "file": file, "token": secret}, secret+"\n")
}
