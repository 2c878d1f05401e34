package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
)

const completionTime = 10 * time.Second

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func (g *global) completed(ids func(context.Context, *client.Client) []string) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
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
	list, _ := c.ListApprovals(ctx) // on an error nothing is offered
	for _, r := range list {
		ids = append(ids, r.ID+"\t"+display.Short(r.Preview.Text))
	}
	return ids
}

func calls(ended bool) func(context.Context, *client.Client) []string {
	return func(ctx context.Context, c *client.Client) (ids []string) {
		list, _ := c.ListCalls(ctx, ended)
		for _, i := range list {
			ids = append(ids, display.Short(i.CallID)+"\t"+console.CallState(i)+" "+display.Short(i.Preview))
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
