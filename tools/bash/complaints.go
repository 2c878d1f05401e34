package bash

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/toold/toold/internal/lazyregexp"
)

// The kernel does not report why it refused an access, so this is inferred from the output of programs.

// tail passes output on and keeps the end, which usually has the error message.
type tail struct {
	output
	mu   sync.Mutex
	last []byte
}

const tailBytes = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.last = append(t.last, p[max(0, len(p)-tailBytes):]...)
	if len(t.last) > 2*tailBytes {
		t.last = slices.Delete(t.last, 0, len(t.last)-tailBytes)
	}
	t.mu.Unlock()
	return t.output.Write(p)
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.last[max(0, len(t.last)-tailBytes):], nil))
}

type complaint struct {
	line   string
	above  []string // lines before, nearest first
	change bool
}

func complaints(text string) []complaint {
	var found []complaint
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i >= 0 && len(found) < maxComplaints; i-- {
		line := strings.TrimRight(lines[i], "\r")
		if m := refusalText().FindStringSubmatchIndex(line); m != nil {
			missing := m[4] >= 0
			c := complaint{line: line, change: !missing && (m[2] < 0 || changeWord().MatchString(line))}
			for j := i - 1; j >= max(0, i-linesAbove); j-- {
				c.above = append(c.above, strings.TrimRight(lines[j], "\r"))
			}
			found = append(found, c)
		}
	}
	return found
}

const (
	maxComplaints = 64
	linesAbove    = 4 // that may name the path
	longestPath   = 1024
	pathsOfEach   = 8
)

func (c complaint) paths() []string {
	var paths []string
	for _, m := range quotedText().FindAllStringSubmatch(c.line, pathsOfEach) {
		paths = append(paths, m[1])
	}
	if at := refusalText().FindStringIndex(c.line); at != nil && len(paths) == 0 {
		paths = unquoted(c.line[:at[0]])
	}
	if len(paths) == 0 {
		paths = c.pathsAbove()
	}
	paths = slices.DeleteFunc(paths, func(p string) bool {
		isPath := p != "" && len(p) <= longestPath && !strings.Contains(p, "://")
		return !isPath || strings.ContainsFunc(p, isControl)
	})
	return paths[:min(len(paths), pathsOfEach)]
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func unquoted(before string) (paths []string) {
	before = strings.TrimSuffix(strings.TrimRight(before, " "), ":")
	parts := strings.Split(before, ": ")
	for i, last := len(parts)-1, true; i >= 0; i, last = i-1, false {
		part := parts[i]
		if strings.HasPrefix(part, "/") {
			paths = append(paths, part)
		}
		word := part[strings.LastIndexByte(part, ' ')+1:]
		isPath := word != part && strings.Contains(word, "/")
		if isPath || last && len(parts) > 1 {
			paths = append(paths, word)
		}
	}
	return paths
}

// isPart reports whether the message begins in the lines before, as cargo's: "failed to write `/x`", "Caused by:".
func (c complaint) isPart() bool {
	return strings.HasPrefix(c.line, " ") || strings.HasPrefix(c.line, "\t")
}

func (c complaint) context() string {
	if !c.isPart() {
		return c.line
	}
	return c.line + "\n" + strings.Join(c.above, "\n")
}

func (c complaint) pathsAbove() (paths []string) {
	if !c.isPart() {
		return nil
	}
	for _, line := range c.above {
		if m := absoluteText().FindStringSubmatch(line); m != nil {
			paths = append(paths, m[1])
		}
	}
	return paths
}

// Messages of programs about refused accesses (strerror(3) in the C locale).
var (
	// refusalText matches the refusal of a path. The first group may be from a read, the second from a hidden path.
	refusalText = lazyregexp.New(`(?i)read-only file system|device or resource busy|operation not permitted|invalid cross-device link|(permission denied)|(no such file or directory)`)

	closedText = lazyregexp.New(`(?i)permission denied|operation not permitted`)
	keptText   = lazyregexp.New(`(?i)read-only file system|device or resource busy`)

	changeWord = lazyregexp.New(`(?i)\b(?:creat\w*|writ\w*|writing|remov\w*|delet\w*|unlink|mkdir|rmdir|make directory|touch|mov[ei]\w*|renam\w*|overwrite|truncate|append\w*|chmod|chown|symlink|link|lock|save|update|install|mknod|mkfifo|output file)\b`)

	quotedText   = lazyregexp.New("['\"`‘“]([^'\"`‘’“”]+)['\"`’”]")
	absoluteText = lazyregexp.New("(?:^|[ '\"`‘“])(/[^ '\"`‘’“”:]+)['\"`’”]?:?$")

	hostText = lazyregexp.New(`(?i)(?:could not resolve(?: host(?:name)?)?:? |unable to resolve host address |getaddrinfo (?:eai_again|enotfound) |failed to resolve |temporary failure resolving |dial \w+: lookup |connect enetunreach |dial tcp |connect to (?:host )?)['"‘“]?([a-z0-9][a-z0-9._-]*)` +
		`|([a-z0-9][a-z0-9._-]*): (?:temporary failure in name resolution|name or service not known)`)
	unreachableText = lazyregexp.New(`(?i)could not resolve|unable to resolve|getaddrinfo|failed to resolve|failure resolving|name resolution|name or service not known|dial \w+: lookup |network is unreachable|enetunreach|could not connect to server|couldn't connect to server`)
	portText        = lazyregexp.New(`(?i)connect to (?:host )?([a-z0-9][a-z0-9._-]*) port ([0-9]{1,5})\b`)

	// socketText matches a socket of the machine, outside of the call's private /run.
	socketText = lazyregexp.New(`(?i)(?:unix://|socket|connect).*?(/(?:var/)?run/[^ '"()<>:]+)`)

	callText = lazyregexp.New(`(?i)(?:\b(ptrace|unshare|setns|pivot_root|bpf|perf_event_open|io_uring_setup|io_uring_queue_init|userfaultfd)\b|^(mount|umount): |(new namespace|user namespace)).*(?:not permitted|permission denied|not implemented)|no permissions to create (?:a )?new (namespace)`)

	// egressKey matches the setting in a message of toold.
	egressKey = lazyregexp.New(`sandbox\.egress\.[a-z_]+`)

	openFilesText = lazyregexp.New(`(?i)too many open files`)
	fullText      = lazyregexp.New(`(?i)no space left on device`)
	largeText     = lazyregexp.New(`(?i)file too large|file size limit exceeded`)
)
