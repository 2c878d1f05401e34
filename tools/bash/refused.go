package bash

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// tail passes output on and keeps its end, where programs say why they failed.
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
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = slices.Delete(t.last, 0, over)
	}
	t.mu.Unlock()
	return t.output.Write(p)
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.last, nil))
}

// What the C library calls the errors with which the kernel refuses paths in a
// sandbox (strerror(3), in the locale C).
const refusals = `Read-only file system|Device or resource busy|Permission denied|Operation not permitted|Invalid cross-device link`

var (
	refusal = regexp.MustCompile(`(?:` + refusals + `)`)
	quoted  = regexp.MustCompile("['\"`‘]([^'\"`‘’]+)['\"`’]")
)

// inferred says which of the paths that a failed command complained of the
// sandbox keeps from it. The kernel tells nobody, so the path is read from the
// text, and told only where the profile confirms it.
func (v *invocation) inferred(text string) []string {
	const most = 5
	var found []string
	for line := range strings.Lines(text) {
		if !refusal.MatchString(line) {
			continue
		}
		for _, path := range pathsIn(line) {
			if !filepath.IsAbs(path) {
				path = v.dir + "/" + path
			}
			why := v.refused(path)
			if why != "" && !slices.Contains(found, why) && len(found) < most {
				found = append(found, why)
			}
		}
	}
	return found
}

// pathsIn lists what may be the path in a complaint such as "touch: cannot touch
// 'x': Read-only file system" or "bash: line 1: x: Permission denied".
func pathsIn(line string) []string {
	var paths []string
	for _, m := range quoted.FindAllStringSubmatch(line, -1) {
		paths = append(paths, m[1])
	}
	if before, _, ok := strings.Cut(line, ": "+refusal.FindString(line)); ok && len(paths) == 0 {
		if i := strings.LastIndex(before, ": "); i >= 0 {
			before = before[i+2:]
		}
		paths = append(paths, before[strings.LastIndexByte(before, ' ')+1:])
	}
	return paths
}

// refused says why the sandbox keeps a path from the call; "" when it does not.
func (v *invocation) refused(path string) string {
	canonical, err := sandbox.Resolve(path)
	if err != nil || v.profile.Mode == sandbox.FullAccess {
		return ""
	}
	for _, p := range v.profile.Protect {
		if within(canonical, p) || within(p, canonical) {
			return fmt.Sprintf("cannot change %s: other programs run or obey it (sandbox.protect); use write_file, which asks the user, or ask the user", p)
		}
	}
	if err := v.profile.CanRead(canonical); err != nil {
		return err.Error()
	}
	if err := v.profile.CanWrite(canonical); err != nil {
		return err.Error()
	}
	return ""
}

// addInferred tells in the result of a failed command what the sandbox probably
// kept from it.
func (v *invocation) addInferred(r *tools.Result, text string) {
	if r.Exit == nil || r.Exit.Code == 0 {
		return
	}
	for _, why := range v.inferred(text) {
		r.Text = strings.TrimPrefix(r.Text+"\nProbably refused by the sandbox (inferred from the output): "+tools.Visible(why)+".", "\n")
	}
}
