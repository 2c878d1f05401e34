package launch

import (
	"fmt"

	"github.com/toold/toold/sandbox"
)

// grouped returns the entry of Report.Enforced for a control group.
func grouped(p sandbox.Profile) []string {
	switch {
	case p.Groups == nil:
		return nil
	case p.Groups.Memory():
		return []string{"cgroup:memory"}
	}
	return []string{"cgroup"}
}

// reportOf returns the Report for this version of Landlock, with or without a broker of connections.
func reportOf(p sandbox.Profile, landlock int, brokered bool) sandbox.Report {
	if p.Mode == sandbox.FullAccess {
		return sandbox.Report{Profile: p.Mode.String(), Enforced: []string{}, Network: true, Tier: "none"}
	}
	caches := ""
	if p.Mode == sandbox.WorkspaceWrite {
		caches = p.Caches.Kind()
	}
	var enforced []string
	switch p.Tier {
	case sandbox.TierA, sandbox.TierBwrap:
		enforced = append(enforced, "namespaces")
	case sandbox.TierB:
		enforced = append(enforced, "namespaces-but-pid")
	}
	sockets := "no-sockets"
	if brokered {
		sockets = "sockets"
	}
	enforced = append(enforced, fmt.Sprintf("landlock:%d", landlock), "seccomp", sockets)
	return sandbox.Report{
		Proxy:    !p.Network && len(p.Ports) > 0,
		Profile:  p.Mode.String(),
		Enforced: append(enforced, grouped(p)...),
		Network:  p.Network,
		Caches:   caches,
		Tier:     p.Tier.String(), Degraded: p.Degraded,
	}
}
