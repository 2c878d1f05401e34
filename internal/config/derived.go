package config

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"github.com/toold/toold/sandbox"
)

// CacheDir returns the directory of the cache stores of all workspaces.
func (c Config) CacheDir() string { return filepath.Join(c.StateDir, "caches") }

// CacheStore returns the directory for changes that a workspace's calls make to tool caches. Workspaces do not share
// it, so that their builds cannot influence each other.
func (c Config) CacheStore() string {
	sum := sha256.Sum256([]byte(c.Workspace))
	return filepath.Join(c.CacheDir(), filepath.Base(c.Workspace)+"-"+hex.EncodeToString(sum[:6]))
}

// Caching reports whether calls get tool caches: those in a sandbox that may write, at least after an escalation.
func (c Config) Caching() bool {
	mode := max(c.Sandbox.Mode, min(c.Escalation.Mode, sandbox.WorkspaceWrite))
	return mode == sandbox.WorkspaceWrite && len(c.Caches) > 0
}

// QuarantineDir returns the directory with copies of removed files.
func (c Config) QuarantineDir() string { return filepath.Join(c.StateDir, "quarantine") }

// PolicyName returns the name of a configuration's policy.
func (c Config) PolicyName() string {
	if c.Policy == "" {
		return `built-in "careful"`
	}
	return c.Policy
}

// Protected reports whether calls may write protected names, at least after an escalation.
func (c Config) Protected() bool {
	return max(c.Sandbox.Mode, c.Escalation.Mode) != sandbox.ReadOnly && len(c.Protect) > 0
}
