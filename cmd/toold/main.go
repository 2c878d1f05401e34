// Command toold judges the tool calls of an AI agent, asks a person where the policy says so, runs them in a sandbox
// and answers each exactly once.
// / In the sandbox of a call this program is the helper: package sandbox/internal/helper takes over in its init,
// before main, when it is started for that.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
}
