package bash

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// The kernel does not report why it refused an access. This file guesses it from the
// output of programs; the guesses count only if the profile confirms them.

// tail passes output on and keeps its end, which usually contains the error message.
type tail struct {
	output
	mu   sync.Mutex
	last []byte
}

// tailBytes is how much of the end is kept.
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

// complaint is a line in which a program reports a refused access.
type complaint struct {
	line   string
	above  []string // the preceding lines, nearest first
	change bool     // the refused access is a change
}

// complaints finds such lines, the last first, where a program usually says why it ended.
func complaints(text string) []complaint {
	var found []complaint
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i >= 0 && len(found) < maxComplaints; i-- {
		line := strings.TrimRight(lines[i], "\r")
		if m := refusalText.FindStringSubmatchIndex(line); m != nil {
			missing := m[4] >= 0
			c := complaint{line: line, change: !missing && (m[2] < 0 || changeWord.MatchString(line))}
			for j := i - 1; j >= max(0, i-linesAbove); j-- {
				c.above = append(c.above, strings.TrimRight(lines[j], "\r"))
			}
			found = append(found, c)
		}
	}
	return found
}

const (
	maxComplaints = 64   // per output
	linesAbove    = 4    // in which the path may be named
	longestPath   = 1024 // of a path
	pathsOfEach   = 8    // of a complaint
)

// paths returns what may be the path that a line is about, the likeliest first. Examples:
// "touch: cannot touch 'x': Read-only file system", "bash: line 1: x: Permission denied",
func (c complaint) paths() []string {
	var paths []string
	for _, m := range quotedText.FindAllStringSubmatch(c.line, pathsOfEach) {
		paths = append(paths, m[1])
	}
	if at := refusalText.FindStringIndex(c.line); at != nil && len(paths) == 0 {
		paths = unquoted(c.line[:at[0]])
	}
	if len(paths) == 0 {
		paths = c.pathsAbove()
	}
	paths = slices.DeleteFunc(paths, func(p string) bool {
		return p == "" || len(p) > longestPath || strings.ContainsFunc(p, isControl) || strings.Contains(p, "://")
	})
	return paths[:min(len(paths), pathsOfEach)]
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// unquoted finds unquoted paths before the complaint proper.
func unquoted(before string) (paths []string) {
	before = strings.TrimSuffix(strings.TrimRight(before, " "), ":")
	parts := strings.Split(before, ": ")
	for i, last := len(parts)-1, true; i >= 0; i, last = i-1, false {
		part := parts[i]
		if strings.HasPrefix(part, "/") {
			paths = append(paths, part)
		}
		word := part[strings.LastIndexByte(part, ' ')+1:]
		if word != part && strings.Contains(word, "/") || last && len(parts) > 1 {
			paths = append(paths, word)
		}
	}
	return paths
}

// pathsAbove finds an absolute path in the preceding lines, as by cargo: "failed to write
// `/x`", then "Caused by:" and the reason.
func (c complaint) pathsAbove() (paths []string) {
	if !strings.HasPrefix(c.line, " ") && !strings.HasPrefix(c.line, "\t") {
		return nil
	}
	for _, line := range c.above {
		if m := absoluteText.FindStringSubmatch(line); m != nil {
			paths = append(paths, m[1])
		}
	}
	return paths
}
