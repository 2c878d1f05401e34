// Command toold decides on the tool calls of an AI agent by a policy, requests approval where the policy says so, runs
// the calls in a sandbox, and answers each exactly once.
//
// In a sandbox the same binary is the helper process: if the daemon has started it as such, the init function of
// sandbox/internal/helper (supervisor_linux.go) takes over before main and never returns.
package main

import (
	"context"
	"os"

	"github.com/toold/toold/internal/console"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
