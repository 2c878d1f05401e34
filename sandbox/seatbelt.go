package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// seatbelt is the profile of macOS's sandbox-exec(1) for p, and its parameters, each "NAME=path".
// tmp is a directory of the call's own, or "". Paths are parameters, never text of the profile.
// Of several rules that match the last one counts, so what is denied comes last.
func (p Profile) seatbelt(tmp string) (text string, parameters []string, err error) {
	switch {
	case p.check() != nil:
		return "", nil, p.check()
	case p.Mode == FullAccess:
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
	if p.Mode == WorkspaceWrite {
		b.writable(p.roots(), p.Names)
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

// beltBase lets programs start, end each other, read what is not hidden, and open terminals. They
// reach the services for users, times and settings, neither the keychain nor launchd.
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

// beltNetwork opens the machine's network and what looks up names for it.
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

// tree is a rule for a path and all below it. A subpath matches only if it exists.
func (b *belt) tree(what, parameter string) {
	b.rule(what, "literal", parameter)
	b.rule(what, "subpath", parameter)
}

// writable opens roots except the protected names in them, at any depth.
func (b *belt) writable(roots, names []string) {
	for _, root := range roots {
		b.tree("allow file-write*", b.parameter("WRITE", root))
	}
	for _, root := range roots {
		within := "^" + beltPattern(strings.TrimSuffix(root, "/")) + "(/.*)?/"
		for _, folder := range beltFolders(names) {
			b.pattern("deny file-write-create file-write-unlink", within+folder+"$")
		}
		for _, name := range names {
			if name == ".git" { // where it is a file, it leads elsewhere
				b.pattern("deny file-write-data", within+beltName(name)+"$")
				continue
			}
			b.pattern("deny file-write*", within+beltFull(name)+"(/|$)")
		}
	}
}

// beltFolders are patterns of the directories of protected names, which are neither made nor
// moved: one prepared under another name would bring what is protected with it.
func beltFolders(names []string) []string {
	var folders []string
	for _, name := range names {
		if name == ".git" {
			folders = append(folders, beltName(name))
		}
		for i, r := range name {
			if r == '/' {
				folders = append(folders, beltFull(name[:i]))
			}
		}
		if strings.HasPrefix(name, ".git/") {
			folders = append(folders, beltName(".git")+beltNested+"/(modules|worktrees)/[^/]+")
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// beltNested leads from git's folder to that of a module or worktree.
const beltNested = "(/(modules|worktrees)/.*)?"

// beltFull is the pattern of a protected name.
func beltFull(name string) string {
	if rest, ok := strings.CutPrefix(name, ".git/"); ok {
		return beltName(".git") + beltNested + "/" + beltName(rest)
	}
	return beltName(name)
}

func (b *belt) pattern(what, pattern string) {
	fmt.Fprintf(&b.text, "(%s (regex #\"%s\"))\n", what, pattern)
}

// beltPattern matches a path, and at most more than it: what is neither a letter of
// ASCII, a digit, a dot, "/", "_" nor "-" is any text. So nothing of a path has a
// meaning in a pattern or a string.
func beltPattern(path string) string {
	return beltWords(path, func(r rune) string { return string(r) })
}

// beltName is beltPattern in both cases, as the file systems of macOS compare.
func beltName(name string) string {
	return beltWords(name, func(r rune) string {
		if upper, lower := strings.ToUpper(string(r)), strings.ToLower(string(r)); upper != lower {
			return "[" + upper + lower + "]"
		}
		return string(r)
	})
}

func beltWords(s string, word func(rune) string) string {
	var pattern strings.Builder
	other := false
	for _, r := range s {
		plain := r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_-", r))
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
