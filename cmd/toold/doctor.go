package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/doctor"
)

func doctorCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Try what this machine offers, and say how to fix what is missing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.doctor(cmd.Context()) },
	}
}

func (g *global) doctor(ctx context.Context) error {
	findings := doctor.Machine(ctx)
	cfg, err := g.readConfig(g.options)
	findings = append(findings, doctor.Configuration(cfg, err)...)
	if err != nil {
		options := g.options
		options.For = config.JudgeCalls // in the home directory all else may be right
		cfg, err = g.readConfig(options)
	}
	if err == nil {
		findings = append(findings, doctor.Daemon(ctx, g.daemon(cfg))...)
		findings = append(findings, g.agentFindings(ctx, cfg)...)
	}
	return doctor.Print(g.Console, findings)
}
