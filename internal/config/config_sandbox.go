package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/escalation"
)

// Egress lists what calls may contact through the network proxy.
type Egress struct {
	Allow   []egress.Pattern // allowed without approval
	Private []netip.Prefix   // private networks that may be reached

	// OtherNames allows a TLS server name other than the requested host.
	OtherNames bool
}

func (l *loader) egress(c *Config) {
	_, c.Egress.Allow = l.hosts("sandbox.egress.allow")
	private := l.list("sandbox.egress.private")
	for i, text := range l.texts(private, "sandbox.egress.private") {
		p, err := netip.ParsePrefix(text)
		if a, single := netip.ParseAddr(text); err != nil && single == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil && text != "" {
			l.fail(private[i], "sandbox.egress.private[%d] cannot be %q: expected an address or a network, such as 10.1.2.3 or 10.0.0.0/8", i, text)
		}
		c.Egress.Private = append(c.Egress.Private, p.Masked())
	}
	c.Egress.OtherNames = l.choice("sandbox.egress.sni_check") == "false"
	ports := l.ports(l.list("sandbox.egress.ports"))
	c.Escalation.Ports = ports
	widens := c.Escalation.Network >= escalation.Proxy || len(c.Escalation.Hosts) > 0
	if l.scalar("sandbox.network").text == "proxy" {
		c.Sandbox.Ports = ports
	} else if !widens && (len(c.Egress.Allow)+len(private) > 0 || c.Egress.OtherNames) {
		l.warn("sandbox.egress has no effect: sandbox.network is not proxy")
	}
}

func (l *loader) hosts(key string) (texts []string, patterns []egress.Pattern) {
	list := l.list(key)
	texts = l.texts(list, key)
	for i, text := range texts {
		p, err := egress.ParsePattern(text)
		if err != nil && text != "" {
			l.fail(list[i], "%s[%d] cannot be %q: %v; expected a host such as proxy.example, *.example.org or pypi.org:443", key, i, text, err)
		}
		patterns = append(patterns, p)
	}
	return texts, patterns
}

func (l *loader) ports(list []scalar) []uint16 {
	if len(list) == 0 {
		return []uint16{80, 443}
	}
	if len(list) > maxPorts {
		l.fail(list[0], "sandbox.egress.ports has %d entries: at most %d", len(list), maxPorts)
	}
	var ports []uint16
	seen := map[string]bool{}
	for i, text := range l.texts(list, "sandbox.egress.ports") {
		n, err := strconv.ParseUint(text, 10, 16)
		isPort := err == nil && n > 0 && strconv.FormatUint(n, 10) == text
		if text != "" && (!isPort || seen[text]) {
			l.fail(list[i], "sandbox.egress.ports[%d] cannot be %q: expected a port from 1 to 65535, each once", i, text)
		}
		seen[text] = true
		ports = append(ports, uint16(n))
	}
	return ports
}

// maxPorts limits the listeners of a call.
const maxPorts = 32

// sockets returns the Unix sockets that calls may use. toold's own are rejected.
func (l *loader) sockets(c *Config, list []scalar) []string {
	var out []string
	for _, s := range list {
		if !s.set {
			continue
		}
		path := l.absolute(s)
		info, err := os.Stat(path)
		switch {
		case path == "":
		case c.Socket != "" && l.canonical(path) == l.canonical(c.Socket):
			l.fail(s, "sandbox.unix_sockets cannot name %s: it is where toold itself listens", path)
		case errors.Is(err, fs.ErrNotExist):
			l.warn("sandbox.unix_sockets: %s does not exist: calls reach it once it does, if its folders are there by then", path)
			out = append(out, filepath.Clean(path))
		case err != nil:
			l.fail(s, "sandbox.unix_sockets: cannot look at %s: %v", path, errors.Unwrap(err))
		case info.Mode()&fs.ModeSocket == 0:
			l.fail(s, "sandbox.unix_sockets: %s is no socket: name each socket that calls may connect to", path)
		default:
			out = append(out, l.canonical(path))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// widen reads the limits of escalations. apart checks their directories against the daemon's files; egress sets ports.
func (l *loader) widen(c *Config) {
	w := &c.Escalation
	if mode := l.choice("approval.widen.profile"); mode != "none" {
		w.Mode, _ = sandbox.ParseMode(mode)
	}
	if w.Mode == sandbox.FullAccess && l.scalar("sandbox.i_understand_full_access").text != "true" {
		l.fail(l.scalar("approval.widen.profile"), "approval.widen.profile danger-full-access lets a person run a call that nothing confines: write i_understand_full_access: true under sandbox to say that you want this")
	}
	w.Network, _ = escalation.ParseNetwork(l.choice("approval.widen.network"))
	w.Hosts, _ = l.hosts("approval.widen.hosts")
	list := l.list("approval.widen.write")
	for i, root := range w.Write {
		never := slices.Concat(c.Sandbox.Hide, []string{"/proc", "/sys", "/dev"})
		hidden := slices.IndexFunc(never, func(h string) bool { return paths.Within(root, h) })
		if hidden >= 0 && len(w.Write) == len(list) { // otherwise one was already rejected
			l.fail(list[i], "approval.widen.write[%d] cannot be %s: calls have no access to %s", i, root, never[hidden])
		}
	}
	w.Protect = c.Protect
}

const presetAutorun = "preset:autorun"

func (l *loader) protected(list []scalar) []string {
	if list == nil {
		list = []scalar{{text: presetAutorun, set: true}}
	}
	names := []string{}
	for i, s := range list {
		key := fmt.Sprintf("sandbox.protect[%d]", i)
		var name string
		l.text(&name, s, key)
		switch {
		case name == presetAutorun:
			names = append(names, policy.Autorun()...)
		case name == "":
		case !protectable(name):
			l.fail(s, "%s cannot be %q: expected %s, a name such as .envrc, a file in a directory such as .cargo/config.toml, or one of git's own: %s; it counts in the workspace and the directories of sandbox.write, at any depth",
				key, name, presetAutorun, strings.Join(gitNames(), ", "))
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func protectable(name string) bool {
	if strings.HasPrefix(name, ".git/") {
		return slices.Contains(gitNames(), name)
	}
	parts := strings.Split(name, "/")
	bad := func(part string) bool {
		return slices.Contains([]string{"", ".", ".."}, part) || strings.ContainsAny(part, "*?[{:")
	}
	return len(parts) <= 2 && !slices.ContainsFunc(parts, bad)
}

func gitNames() []string {
	return slices.DeleteFunc(policy.Autorun(), func(name string) bool { return !strings.HasPrefix(name, ".git/") })
}

// toolCaches lists the caches of common tools, with the variables that relocate them. Only gradle's also contains
// settings; calls change their own copy.
func toolCaches() []caches.Cache {
	return []caches.Cache{
		{Path: "~/.cache", Env: "XDG_CACHE_HOME"}, // of go, pip, uv, yarn and others
		{Path: "~/go/pkg/mod", Env: "GOMODCACHE"},
		{Path: "~/.npm", Env: "npm_config_cache"},
		{Path: "~/.cargo/registry", Env: "CARGO_HOME"},
		{Path: "~/.cargo/git"},
		{Path: "~/.gradle", Env: "GRADLE_USER_HOME"},
		{Path: "~/.m2/repository"},
	}
}

func (l *loader) caches(c *Config, list []scalar) []caches.Cache {
	var known, out []caches.Cache
	for _, cache := range toolCaches() {
		if path := l.expand(cache.Path); path != "" {
			known = append(known, caches.Cache{Path: l.canonical(path), Env: cache.Env})
		}
	}
	if list == nil {
		return slices.DeleteFunc(known, func(k caches.Cache) bool { return l.cacheProblem(c, k.Path) != "" })
	}
	for i, s := range list {
		if !s.set {
			continue
		}
		key := fmt.Sprintf("sandbox.caches[%d]", i)
		cache := caches.Cache{Path: l.canonical(l.absolute(s))}
		k := slices.IndexFunc(known, func(k caches.Cache) bool { return k.Path == cache.Path })
		if k >= 0 {
			cache.Env = known[k].Env
		}
		if why := l.cacheProblem(c, cache.Path); why != "" {
			l.fail(s, "%s cannot be %s: %s", key, cache.Path, why)
			continue
		}
		if _, err := os.Stat(cache.Path); errors.Is(err, fs.ErrNotExist) && k < 0 {
			l.warn("%s: %s does not exist: calls cannot write there", key, cache.Path)
		}
		out = append(out, cache)
	}
	return out
}

// cacheProblem returns why a directory cannot be a cache, or "". Calls share caches, so a cache must not be in PATH.
func (l *loader) cacheProblem(c *Config, path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return "it is not a folder"
	}
	if path == "/" || l.home != "" && paths.Within(l.canonical(l.home), path) {
		return "it holds your home; name the folders of the tools"
	}
	if c.StateDir != "" && (paths.Within(c.StateDir, path) || paths.Within(path, c.StateDir)) {
		return "the state directory " + c.StateDir + " and a cache must lie apart"
	}
	for _, dir := range filepath.SplitList(l.getenv("PATH")) {
		if filepath.IsAbs(dir) && paths.Within(l.canonical(dir), path) {
			return dir + " is in PATH: a call could change what later commands run"
		}
	}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/etc", "/proc", "/sys", "/dev", "/boot"} {
		if paths.Within(path, dir) || paths.Within(l.canonical(dir), path) {
			return "it belongs to the system"
		}
	}
	return ""
}
