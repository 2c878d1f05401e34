// Command toold is the pair of hands between an AI agent and a developer's
// machine: a daemon that judges tool calls, asks a person where the policy says
// so, runs them in a sandbox and answers each exactly once.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
}
