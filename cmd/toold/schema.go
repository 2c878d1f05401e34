package main

import (
	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/message"
)

func schemaCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of every frame of the protocol", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := message.Schema()
			if err != nil {
				return &exitError{exitFailed, err}
			}
			return g.out(string(schema) + "\n")
		},
	}
}

func policySchemaCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of policy files, for editors", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.PolicySchema()
			if err != nil {
				return &exitError{exitFailed, err}
			}
			return g.out(string(schema) + "\n")
		},
	}
}
