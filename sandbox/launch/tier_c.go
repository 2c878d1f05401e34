package launch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
)

// withoutNamespaces says what calls in tier C lack, and what does not restrict them.
const withoutNamespaces = "a call can read nothing but the workspace, the system's directories and those in sandbox.read, makes no local sockets and no others while the network is off, " +
	"has no private /tmp (but a directory of its own in TMPDIR) and no tool caches, sees the command lines of other processes, opens files in the workspace that rules ask about or deny, such as .env, " +
	"where a program finds them by itself (grep -r), and can change protected names that exist and the modes and times of your files anywhere"

// chooseC tests whether tier C works after a higher tier has failed.
func chooseC(ctx context.Context, p sandbox.Profile, lowest sandbox.Tier, failed *sandbox.StageError) (sandbox.Profile, sandbox.Report, error) {
	c := listed(p)
	report, err := Try(ctx, c)
	switch {
	case err != nil && lowest == sandbox.TierC:
		return p, sandbox.Report{}, errors.Join(failed, fmt.Errorf("tier C does not work either: %w", err))
	case err != nil:
		return p, sandbox.Report{}, failed
	case lowest < sandbox.TierC:
		return p, sandbox.Report{}, fmt.Errorf("%w; sandbox.allow_degraded: tier-c in the configuration goes on without namespaces: then %s", failed, withoutNamespaces)
	}
	c.Degraded = fmt.Sprintf("there are no namespaces (%s: %v), so %s; %s", failed.Stage, failed.Err, withoutNamespaces, failed.Advice)
	report.Degraded = c.Degraded
	return c, report, nil
}

// listed returns the profile for tier C, without what requires namespaces.
func listed(p sandbox.Profile) sandbox.Profile {
	p.Tier, p.Ports, p.Sockets, p.Caches = sandbox.TierC, nil, nil, nil
	p.Read = slices.Clone(p.Read)
	for _, path := range systemDirs() {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			p.Read = append(p.Read, real)
		}
	}
	slices.Sort(p.Read)
	p.Read = slices.Compact(p.Read)
	return p
}

// systemDirs returns the directories of installed programs, which contain no files of users.
func systemDirs() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store",
		"/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/etc/resolv.conf",
	}
}

func checkListed(p sandbox.Profile) error {
	for _, root := range p.Roots() {
		for _, hidden := range p.Hide {
			if p.Mode == sandbox.WorkspaceWrite && paths.Within(hidden, root) {
				return fmt.Errorf("without namespaces %s cannot be hidden inside of %s, which calls may write: choose another workspace, or other directories in sandbox.write and sandbox.hide", hidden, root)
			}
		}
	}
	return nil
}
