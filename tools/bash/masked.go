package bash

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/shell"
	"github.com/toold/toold/tools/argument"
)

const mostEscalated = 64

// escalate adds the reads that a call requests as effects. Once approved, these files are not masked.
func (v *invocation) escalate(e extraAccess) error {
	if len(e.Read) > mostEscalated {
		return &argument.Error{Field: "escalate.read", Problem: fmt.Sprintf("it has %d paths; at most %d can be requested", len(e.Read), mostEscalated)}
	}
	for _, asked := range e.Read {
		path := asked
		if !filepath.IsAbs(path) {
			path = v.dir + "/" + path
		}
		canonical := shell.Host().Canonical(path)
		if asked == "" || canonical == "" {
			return &argument.Error{Field: "escalate.read", Problem: fmt.Sprintf("%q cannot be resolved: expected a path, absolute or relative to cwd", asked)}
		}
		info, err := os.Stat(canonical)
		v.effects = append(v.effects, policy.Effect{
			Kind: policy.Read, Path: filepath.Clean(path), Canonical: canonical, Tree: err == nil && info.IsDir(), Source: "escalate.read",
		})
	}
	return nil
}

const mostMasked = 4

// maskedIn returns the masks that caused errors in a text: reading a masked file is denied, and changing or moving it
// fails because it is read-only or busy.
func (v *invocation) maskedIn(text string) (denied []sandbox.Denial) {
	if v.profile.Masks == nil {
		return nil
	}
	var closed, kept []named
	left := pathsLookedAt
	for _, c := range complaints(text) {
		n := v.named(c, &left)
		if v.explains(n, c.change) {
			n.loose = ""
		}
		if closedText().MatchString(c.line) {
			closed = append(closed, n)
		}
		if keptText().MatchString(c.line) {
			kept = append(kept, n)
		}
	}
	find := func(masks []sandbox.Mask, by []named, change bool) {
		for _, m := range masks {
			if len(denied) < mostMasked && slices.ContainsFunc(by, func(n named) bool { return n.has(m.Path) }) {
				kept := change && slices.ContainsFunc(v.profile.Protect, func(kept string) bool { return paths.Within(m.Path, kept) })
				denied = append(denied, *m.Denial(v.relative(m.Path), change, kept))
			}
		}
	}
	find(v.profile.Masks.Hidden, closed, false)
	find(v.profile.Masks.Fixed, closed, true)
	find(slices.Concat(v.profile.Masks.Hidden, v.profile.Masks.Fixed), kept, true)
	return denied
}

// explains reports whether one of the paths is denied where it is looked for first.
func (v *invocation) explains(n named, change bool) bool {
	masked := func(m sandbox.Mask) bool { return n.names(m.Path) }
	refused := func(path string) bool { return v.profile.Denied(path, change) != nil }
	isMask := slices.ContainsFunc(v.profile.Masks.Hidden, masked) || slices.ContainsFunc(v.profile.Masks.Fixed, masked)
	return isMask || slices.ContainsFunc(n.paths, refused)
}

// named has the paths in a complaint.
type named struct {
	paths []string // with symbolic links resolved
	loose string   // text with paths that may be relative to another directory
}

func (v *invocation) named(c complaint, left *int) (n named) {
	all := c.paths()
	if len(all) == 0 {
		n.loose = c.context()
	}
	for _, path := range all {
		if !filepath.IsAbs(path) {
			n.loose += path + "\n"
		}
		for _, at := range v.found(path, c.line) {
			if *left--; *left < 0 {
				return n
			}
			if at, err := paths.Resolve(at); err == nil {
				n.paths = append(n.paths, at)
			}
		}
	}
	return n
}

func (n named) has(path string) bool {
	return n.names(path) || hasName(n.loose, filepath.Base(path))
}

func (n named) names(path string) bool {
	return slices.ContainsFunc(n.paths, func(named string) bool { return paths.Within(named, path) })
}

func (v *invocation) relative(path string) string {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(v.dir, "/")+"/"); ok {
		return rest
	}
	return path
}

func hasName(text, name string) bool {
	for at := 0; ; at++ {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		at += i
		before, after := text[:at], text[at+len(name):]
		if !endsInName(before) && !continues(after) {
			return true
		}
	}
}

func endsInName(before string) bool { return before != "" && inName(before[len(before)-1]) }

func continues(after string) bool {
	after = strings.TrimPrefix(after, ".")
	return after != "" && inName(after[0])
}

func inName(c byte) bool {
	letter := c|0x20 >= 'a' && c|0x20 <= 'z'
	digit := c >= '0' && c <= '9'
	other := c >= 0x80 || slices.Contains([]byte("_-."), c)
	return letter || digit || other
}

func replaced(m sandbox.Mask) sandbox.Denial {
	d := m.Denial(m.Path, false, false)
	d.Exact = true
	d.Hint = "it was replaced while this call ran, which removed the mask over it, so the call was stopped (rule " + m.Rule + "); run it again"
	return *d
}
