package config

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"github.com/toold/toold/sandbox"
)

// CacheDir contains the stores of all workspaces.
func (c Config) CacheDir() string { return filepath.Join(c.StateDir, "caches") }

// CacheStore is the directory for the changes of a workspace's calls to tool caches. Each workspace has its own: what its
// builds write does not reach another.
func (c Config) CacheStore() string {
	sum := sha256.Sum256([]byte(c.Workspace))
	return filepath.Join(c.CacheDir(), filepath.Base(c.Workspace)+"-"+hex.EncodeToString(sum[:6]))
}

// Caching reports whether calls have tool caches: confined ones that may write, if only with an escalation.
func (c Config) Caching() bool {
	mode := max(c.Sandbox.Mode, min(c.Escalation.Mode, sandbox.WorkspaceWrite))
	return mode == sandbox.WorkspaceWrite && len(c.Caches) > 0
}

// QuarantineDir is the directory with copies of what was removed.
func (c Config) QuarantineDir() string { return filepath.Join(c.StateDir, "quarantine") }

// PolicyName returns the name of a configuration's policy.
func (c Config) PolicyName() string {
	if c.Policy == "" {
		return `built-in "careful"`
	}
	return c.Policy
}

// Protected reports whether calls may write protected names, if only with an escalation.
func (c Config) Protected() bool {
	return max(c.Sandbox.Mode, c.Escalation.Mode) != sandbox.ReadOnly && len(c.Protect) > 0
}
