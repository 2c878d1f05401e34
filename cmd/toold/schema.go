package main

import (
	"github.com/spf13/cobra"
)

func schemaCommand(g *global, short string, schema func() ([]byte, error)) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: short, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := schema()
			if err != nil {
				return err
			}
			return g.out(string(text) + "\n")
		},
	}
}
