package bash

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox"
)

// inferred guesses from the output which failures the sandbox caused. It reports only those that the profile confirms.
func (v *invocation) inferred(exit executor.Exit, text string) []sandbox.Denial {
	denied := v.confirmed(exit, text)
	if !v.limited {
		return denied
	}
	configured := *v
	configured.profile = v.configured
	own := configured.confirmed(exit, text)
	for i, d := range denied {
		same := func(o sandbox.Denial) bool { return o.Target == d.Target }
		if !slices.ContainsFunc(own, same) {
			denied[i] = byClient(d)
		}
	}
	return denied
}

// byClient rewords a denial that only tools.IO.Limit causes.
func byClient(d sandbox.Denial) sandbox.Denial {
	switch d.Kind {
	case sandbox.DeniedProtected:
		d.Kind, d.Op = sandbox.DeniedFile, "write"
	case sandbox.DeniedFile, sandbox.DeniedHost:
	default:
		return d
	}
	setting := map[string]string{"write": "writable_roots", "connect to": "network_access"}[d.Op]
	d.Setting, d.Hint = "the agent's own sandbox", "the agent's own sandbox forbids it, and toold keeps to that"
	if setting != "" {
		d.Hint += " (in Codex: " + setting + " of [sandbox_workspace_write])"
	}
	d.Hint += "; do without, or ask the user, who can do it or change the agent's settings"
	return d
}

func (v *invocation) confirmed(exit executor.Exit, text string) []sandbox.Denial {
	if v.profile.Mode == sandbox.FullAccess {
		return nil
	}
	return slices.Concat(v.maskedIn(text), v.deniedLimits(exit, text), v.deniedCalls(text), v.deniedPaths(text), v.deniedSockets(text), v.deniedHosts(text))
}

// unchanged returns the protected paths that a command which worked could not change: git, for one, goes
// on without its configuration.
func (v *invocation) unchanged(exit executor.Exit, text string) []sandbox.Denial {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, "resource busy") || strings.Contains(line, "ead-only file system") {
			kept.WriteString(line)
		}
	}
	return slices.DeleteFunc(v.inferred(exit, kept.String()), func(d sandbox.Denial) bool { return d.Kind != sandbox.DeniedProtected })
}

const pathsLookedAt = 32

func (v *invocation) deniedPaths(text string) (denied []sandbox.Denial) {
	left := pathsLookedAt
	for _, c := range complaints(text) {
		if callText().MatchString(c.line) {
			continue
		}
		for _, path := range c.paths() {
			if left--; left < 0 {
				return denied
			}
			if d := v.deniedPath(path, c); d != nil {
				denied = append(denied, *d)
				break
			}
		}
	}
	return denied
}

// deniedPath names a relative path as it was printed if it may be several that are denied.
func (v *invocation) deniedPath(path string, c complaint) (d *sandbox.Denial) {
	for _, at := range v.found(path, c.line) {
		next := v.profile.Denied(at, c.change)
		if next != nil && d != nil {
			d.Target = path
			return d
		}
		d = cmp.Or(d, next)
	}
	return d
}

func (v *invocation) deniedSockets(text string) (denied []sandbox.Denial) {
	for line := range strings.Lines(text) {
		m := socketText().FindStringSubmatch(line)
		if m == nil || len(m[1]) > longestPath || strings.ContainsFunc(m[1], isControl) {
			continue
		}
		path := strings.Replace(filepath.Clean(strings.TrimRight(m[1], ".,;")), "/var/run/", "/run/", 1)
		if !slices.Contains(v.profile.Sockets, path) {
			denied = append(denied, deniedSocket(path, false))
		}
	}
	return denied
}

func deniedSocket(path string, exact bool) sandbox.Denial {
	return sandbox.Denial{
		Kind: sandbox.DeniedSocket, Op: "connect to", Target: path, Exact: exact, Setting: "sandbox.unix_sockets",
		Hint: "commands reach only their own local sockets and those that sandbox.unix_sockets lists; ask the user",
	}
}

// deniedHosts returns hosts from the output. If connections go through the proxy, exactly reports the other denials.
func (v *invocation) deniedHosts(text string) (denied []sandbox.Denial) {
	if v.profile.Network {
		return nil
	}
	unknown := false
	for line := range strings.Lines(text) {
		if len(v.profile.Ports) > 0 {
			denied = append(denied, v.deniedPort(line)...)
			continue
		}
		if !unreachableText().MatchString(line) {
			continue
		}
		if m := hostText().FindStringSubmatch(line); m == nil {
			unknown = true
		} else if host := m[1] + m[2]; !isOwn(host) && len(host) < 256 {
			denied = append(denied, v.deniedHost(host))
		}
	}
	if unknown && len(denied) == 0 {
		denied = append(denied, v.deniedHost("other machines"))
	}
	return denied
}

func (v *invocation) deniedHost(host string) sandbox.Denial {
	return sandbox.Denial{
		Kind: sandbox.DeniedHost, Op: "connect to", Target: strings.TrimRight(host, "."), Setting: "sandbox.network",
		Hint: "commands have no network except their own localhost (sandbox.network: off), and no argument of a call opens it, so do not repeat it; do without, or ask the user to " + v.opening(),
	}
}

// opening returns what a person sets so that commands have a network.
func (v *invocation) opening() string {
	if p := v.profile; !p.Masking() || p.Tier == sandbox.TierBwrap { // it cannot be led to hosts by name
		return "set sandbox: {network: full} in toold's configuration and start toold again"
	}
	return "set sandbox: {network: proxy} in toold's configuration and start toold again: each host is asked about then, unless sandbox.egress.allow lists it"
}

func (v *invocation) deniedPort(line string) []sandbox.Denial {
	m := portText().FindStringSubmatch(line)
	if m == nil || isOwn(m[1]) || len(m[1]) > 255 {
		return nil
	}
	port, err := strconv.ParseUint(m[2], 10, 16)
	if err != nil || slices.Contains(v.profile.Ports, uint16(port)) {
		return nil
	}
	return []sandbox.Denial{{
		Kind: sandbox.DeniedHost, Op: "connect to", Target: m[1] + ":" + m[2], Setting: "sandbox.egress.ports",
		Hint: fmt.Sprintf("connections go to the ports %s only (sandbox.egress.ports); use one of them, or ask the user", strings.Trim(fmt.Sprint(v.profile.Ports), "[]")),
	}}
}

func isOwn(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || strings.EqualFold(host, "localhost")
}

func (v *invocation) deniedCalls(text string) (denied []sandbox.Denial) {
	for line := range strings.Lines(text) {
		m := callText().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := strings.ToLower(m[1] + m[2] + m[3] + m[4])
		if strings.Contains(name, "namespace") {
			name = "unshare"
		}
		denied = append(denied, sandbox.Denial{
			Kind: sandbox.DeniedSyscall, Op: "use", Target: strings.TrimSuffix(name, "_queue_init"), Setting: "sandbox.profile",
			Hint: "debuggers, tracers, mounts, nested namespaces (containers, sandboxes of browsers) and io_uring do not work inside the sandbox; use an option that avoids them, or ask the user",
		})
	}
	return denied
}

func (v *invocation) deniedLimits(exit executor.Exit, text string) (denied []sandbox.Denial) {
	l := v.profile.Limits
	met := func(limit uint64, setting, op, hint string) {
		if limit > 0 {
			denied = append(denied, deniedLimit(setting, op, hint))
		}
	}
	if openFilesText().MatchString(text) {
		met(l.OpenFiles, "open_files", "open more files", fmt.Sprintf("a process may have %d open", l.OpenFiles))
	}
	if exit.Signal == "SIGXFSZ" || exit.Code == 128+25 || largeText().MatchString(text) {
		met(l.FileBytes, "file_bytes", "make a file larger", fmt.Sprintf("one file may have %d bytes", l.FileBytes))
	}
	for line := range strings.Lines(text) {
		if m := quotedText().FindStringSubmatch(line); fullText().MatchString(line) && m != nil && v.profile.Scratch(filepath.Clean(m[1])) {
			met(l.TmpBytes, "tmp_bytes", "write more into /tmp", fmt.Sprintf("the private /tmp of a call has %d MiB; write into the workspace", l.TmpBytes>>20))
			break
		}
	}
	return denied
}

func deniedLimit(name, op, hint string) sandbox.Denial {
	setting := "sandbox.limits." + name
	return sandbox.Denial{Kind: sandbox.DeniedLimit, Op: op, Target: name, Setting: setting, Hint: hint + " (" + setting + " in the configuration)"}
}
