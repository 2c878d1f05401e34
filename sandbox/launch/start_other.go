//go:build !linux

package launch

import (
	"context"
	"errors"
	"os"
	"runtime"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

var errPlatform = errors.New("on " + runtime.GOOS + " toold cannot confine that")

const advicePlatform = "run the daemon on Linux (in a container, a virtual machine or WSL 2), or set sandbox.profile: danger-full-access, with which nothing is confined"

func unsupported() error {
	return &sandbox.StageError{Stage: "platform", Err: errPlatform, Advice: advicePlatform}
}

// Overlays returns an error, since other systems have no overlays.
func Overlays(context.Context, []helper.Overlay) (trees []*os.File, reasons []error, err error) {
	return nil, nil, unsupported()
}

// Slots is empty: a helper ends with its call.
type Slots struct{}
