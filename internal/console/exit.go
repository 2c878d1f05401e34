package console

import (
	"fmt"
)

// Exit codes of all commands but call.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitConfig      = 3 // or the policy
	ExitUnreachable = 4
	ExitNotPending  = 5
	ExitTampered    = 6
	ExitInterrupted = 130
)

// ExitError ends the program with Code. A nil Err prints nothing.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit returns an *ExitError.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Usage returns err with ExitUsage.
func Usage(err error) error { return Exit(ExitUsage, err) }
