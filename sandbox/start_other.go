//go:build !linux

package sandbox

import (
	"errors"
	"runtime"
)

// masking: see Profile.Masking.
const masking = false

var errPlatform = errors.New("on " + runtime.GOOS + " toold cannot confine that")

const advicePlatform = "run the daemon on Linux (in a container, a virtual machine or WSL 2), or set sandbox.profile: danger-full-access, with which nothing is confined"

// Unsupported returns the error of platforms that cannot confine.
func Unsupported() error {
	return &StageError{Stage: "platform", Err: errPlatform, Advice: advicePlatform}
}

// Slots is empty: a helper ends with its call.
type Slots struct{}
