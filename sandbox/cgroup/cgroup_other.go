//go:build !linux

package cgroup

import (
	"errors"
	"os/exec"
)

// Root makes no groups here.
type Root struct{}

// Open refuses.
func Open() (*Root, error) { return nil, errors.New("there are no control groups on this system") }

// Memory is false.
func (r *Root) Memory() bool { return false }

// Place is empty.
func (r *Root) Place() string { return "" }

// Close does nothing.
func (r *Root) Close() {}

// New makes nil.
func (r *Root) New(Limits) (*Group, error) { return nil, nil }

// Group holds nothing here.
type Group struct{}

// Start starts the command.
func (g *Group) Start(cmd *exec.Cmd) error { return cmd.Start() }

// Met is empty.
func (g *Group) Met() Met { return Met{} }

// End does nothing.
func (g *Group) End() error { return nil }

// Fresh is true.
func (g *Group) Fresh() bool { return true }
