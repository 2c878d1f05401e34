//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"runtime"
)

var errPlatform = errors.New("toold runs no calls on " + runtime.GOOS + ", where it can confine nothing")

const advicePlatform = "run the daemon on Linux: in a container, a virtual machine or WSL 2"

// Probe reports that nothing can be confined here.
func Probe(context.Context) Capabilities {
	return Capabilities{Features: []Feature{{Name: "sandbox", Why: errPlatform.Error(), Mend: advicePlatform}}}
}

// Unsupported is the refusal of every start on this platform.
func Unsupported() error {
	return &StageError{Stage: "platform", Err: errPlatform, Advice: advicePlatform}
}
