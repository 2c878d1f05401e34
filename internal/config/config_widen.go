package config

import (
	"slices"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/widen"
)

// widen reads what an approver may add to the sandbox of one call. Nothing may be
// added that is not named, and the daemon's own files are apart from the folders
// already. The ports come with egress.
func (l *loader) widen(c *Config, raw file) {
	r, w := raw.Approval.Widen, &c.Widen
	mode, network := "none", widen.Off.String()
	l.word(&mode, r.Profile, "approval.widen.profile", "none", "workspace-write", "danger-full-access")
	if mode != "none" {
		w.Mode, _ = sandbox.ParseMode(mode) // the word was checked
	}
	if w.Mode == sandbox.FullAccess && raw.Sandbox.FullAccess.text != "true" {
		l.fail(r.Profile, "approval.widen.profile danger-full-access lets a person run a call that nothing confines: write i_understand_full_access: true under sandbox to say that you want this")
	}
	l.word(&network, r.Network, "approval.widen.network", "off", "proxy", "full")
	w.Network, _ = widen.ParseNetwork(network) // the word was checked
	w.Hosts, _ = l.hosts(r.Hosts, "approval.widen.hosts")
	for i, root := range w.Write {
		never := slices.Concat(c.Sandbox.Hide, []string{"/proc", "/sys", "/dev"})
		hidden := slices.IndexFunc(never, func(h string) bool { return paths.Within(root, h) })
		if hidden >= 0 && len(w.Write) == len(r.Write) { // else one is faulty already
			l.fail(r.Write[i], "approval.widen.write[%d] cannot be %s: calls have no access to %s", i, root, never[hidden])
		}
	}
	w.Protect = c.Protect
}
