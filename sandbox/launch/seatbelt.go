package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/sandbox"
)

// seatbelt returns the profile of sandbox-exec(1) for p, and its parameters as "NAME=path". tmp is the call's
// temporary directory, or "". Paths are parameters, never text of the profile. The last matching rule wins, so
// denials come last.
func seatbelt(p sandbox.Profile, tmp string) (text string, parameters []string, err error) {
	switch {
	case check(p) != nil:
		return "", nil, check(p)
	case p.Mode == sandbox.FullAccess:
		return "", nil, errors.New("danger-full-access has no profile")
	case !p.Network && len(p.Ports) > 0:
		return "", nil, errors.New("connections by name (sandbox.network: proxy) are made on Linux only; use off or full")
	}
	b := &belt{}
	b.text.WriteString(beltBase)
	if tmp != "" {
		own := b.parameter("TMP", tmp)
		b.rule("allow file-write*", "subpath", own)
		b.rule("allow network-bind network-inbound network-outbound", "subpath", own)
	}
	if p.Mode == sandbox.WorkspaceWrite {
		b.writable(p.Roots(), p.Names)
	}
	if p.Network {
		b.text.WriteString(beltNetwork)
	}
	for _, socket := range p.Sockets {
		b.rule("allow network-outbound", "literal", b.parameter("SOCKET", socket))
	}
	for _, path := range p.Protect {
		b.tree("deny file-write*", b.parameter("PROTECT", path))
	}
	for _, path := range p.Hide {
		b.tree("deny file* network-outbound", b.parameter("HIDE", path))
	}
	return b.text.String(), b.parameters, nil
}

// beltBase lets programs start, kill each other, read what is not hidden, and open terminals. They can use the
// services for users, times and settings, but not the keychain or launchd.
const beltBase = `(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.bsd.dirhelper"))
(allow file-read* (subpath "/"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (subpath "/dev/fd"))
(allow file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper"))
(allow pseudo-tty)
(allow file-write* file-ioctl (literal "/dev/ptmx"))
(allow file-write* file-ioctl
  (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
`

// beltNetwork allows the machine's network and name service.
const beltNetwork = `(allow system-socket)
(allow network-outbound (remote ip "*:*"))
(allow network-inbound (local ip "*:*"))
(allow network-bind (local ip "*:*"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
(allow mach-lookup
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.SystemConfiguration.configd"))
`

type belt struct {
	text       strings.Builder
	parameters []string
}

func (b *belt) parameter(kind, path string) string {
	name := kind + strconv.Itoa(len(b.parameters))
	b.parameters = append(b.parameters, name+"="+path)
	return name
}

func (b *belt) rule(what, filter, parameter string) {
	fmt.Fprintf(&b.text, "(%s (%s (param %q)))\n", what, filter, parameter)
}

// tree adds a rule for a path and everything below it. A subpath must exist to match.
func (b *belt) tree(what, parameter string) {
	b.rule(what, "literal", parameter)
	b.rule(what, "subpath", parameter)
}

// writable allows writing to roots, except to protected names at any depth.
func (b *belt) writable(roots, names []string) {
	for _, root := range roots {
		b.tree("allow file-write*", b.parameter("WRITE", root))
	}
	for _, root := range roots {
		within := "^" + beltPattern(strings.TrimSuffix(root, "/")) + "(/.*)?/"
		for _, dir := range beltDirs(names) {
			b.pattern("deny file-write-create file-write-unlink", within+dir+"$")
		}
		for _, name := range names {
			if name == ".git" { // a file refers to another directory
				b.pattern("deny file-write-data", within+beltName(name)+"$")
				continue
			}
			b.pattern("deny file-write*", within+beltFull(name)+"(/|$)")
		}
	}
}

// beltDirs returns patterns of the directories of protected names. They can neither be created nor moved, since a
// directory prepared under another name would contain protected files.
func beltDirs(names []string) []string {
	var dirs []string
	for _, name := range names {
		if name == ".git" {
			dirs = append(dirs, beltName(name))
		}
		for i, r := range name {
			if r == '/' {
				dirs = append(dirs, beltFull(name[:i]))
			}
		}
		if strings.HasPrefix(name, ".git/") {
			dirs = append(dirs, beltName(".git")+beltNested+"/(modules|worktrees)/[^/]+")
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// beltNested matches the path from git's directory to that of a module or worktree.
const beltNested = "(/(modules|worktrees)/.*)?"

func beltFull(name string) string {
	if rest, ok := strings.CutPrefix(name, ".git/"); ok {
		return beltName(".git") + beltNested + "/" + beltName(rest)
	}
	return beltName(name)
}

func (b *belt) pattern(what, pattern string) {
	fmt.Fprintf(&b.text, "(%s (regex #\"%s\"))\n", what, pattern)
}

// beltPattern returns a pattern that matches a path, and possibly more: everything except ASCII letters, digits, ".",
// "/", "_" and "-" becomes a wildcard. So no part of a path is special in a pattern or a string.
func beltPattern(path string) string {
	return beltWords(path, func(r rune) string { return string(r) })
}

// beltName is like beltPattern, but ignores case, as macOS file systems do.
func beltName(name string) string {
	return beltWords(name, func(r rune) string {
		if upper, lower := strings.ToUpper(string(r)), strings.ToLower(string(r)); upper != lower {
			return "[" + upper + lower + "]"
		}
		return string(r)
	})
}

func beltWords(s string, word func(rune) string) string {
	const itself = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_-"
	var pattern strings.Builder
	other := false
	for _, r := range s {
		plain := strings.ContainsRune(itself, r)
		switch {
		case plain:
			pattern.WriteString(word(r))
		case r == '.':
			pattern.WriteString("[.]")
		case !other:
			pattern.WriteString(".+")
		}
		other = !plain && r != '.'
	}
	return pattern.String()
}
