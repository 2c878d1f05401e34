package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
)

func policySchemaCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of policy files, for editors", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.PolicySchema()
			if err != nil {
				return &exitError{exitFailed, err}
			}
			_, err = fmt.Fprintf(g.std.out, "%s\n", schema)
			return err
		},
	}
}
