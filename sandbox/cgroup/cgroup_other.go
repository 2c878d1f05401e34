//go:build !linux

package cgroup

import (
	"errors"
	"os/exec"
)

// Root is empty here.
type Root struct{}

// Open fails.
func Open() (*Root, error) { return nil, errors.New("there are no control groups on this system") }

// Memory returns false.
func (r *Root) Memory() bool { return false }

// Dir returns "".
func (r *Root) Dir() string { return "" }

// Close does nothing.
func (r *Root) Close() {}

// New returns nil.
func (r *Root) New(Limits) (*Group, error) { return nil, nil }

// Group is empty here.
type Group struct{}

// Start starts the command.
func (g *Group) Start(cmd *exec.Cmd) error { return cmd.Start() }

// Met returns the zero value.
func (g *Group) Met() Met { return Met{} }

// End does nothing.
func (g *Group) End() error { return nil }

// Fresh returns true.
func (g *Group) Fresh() bool { return true }
