// Command toold judges the tool calls of an AI agent, asks a person where the policy says so, runs them in a sandbox
// and answers each exactly once.
//
// Below a sandbox the same binary is the helper process: the init function of sandbox/internal/helper
// (supervisor_linux.go) takes over before main, and never returns, when the daemon has started it as such.
package main

import (
	"context"
	"os"

	"github.com/toold/toold/internal/console"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
