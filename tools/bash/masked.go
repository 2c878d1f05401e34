package bash

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// mostEscalated is how many paths a call may ask to read.
const mostEscalated = 64

// escalate adds the reads that a call asks for, whatever its script says: they are judged as
// those of the script, and with a person's yes no mask keeps them from the call.
func (v *invocation) escalate(e escalation) error {
	if len(e.Read) > mostEscalated {
		return &tools.ArgumentError{Field: "escalate.read", Problem: fmt.Sprintf("it has %d paths; at most %d can be asked for", len(e.Read), mostEscalated)}
	}
	for _, asked := range e.Read {
		path := asked
		if !filepath.IsAbs(path) {
			path = v.dir + "/" + path
		}
		canonical := v.tool.options.Resolver.Canonical(path)
		if asked == "" || canonical == "" {
			return &tools.ArgumentError{Field: "escalate.read", Problem: fmt.Sprintf("%q cannot be resolved: expected a path, absolute or relative to cwd", asked)}
		}
		info, err := os.Stat(canonical)
		v.effects = append(v.effects, policy.Effect{
			Kind: policy.Read, Path: filepath.Clean(path), Canonical: canonical, Tree: err == nil && info.IsDir(), Source: "escalate.read",
		})
	}
	return nil
}

// mostMasked is how many masked paths of an output are named.
const mostMasked = 4

// maskedIn lists the masks whose paths a text names: a plain search, in the text of a
// command that failed.
func (v *invocation) maskedIn(text string) (denied []sandbox.Denial) {
	if v.profile.Masks == nil {
		return nil
	}
	find := func(masks []sandbox.Mask, change bool) {
		for _, m := range masks {
			if name := v.namedIn(text, m.Path); name != "" && len(denied) < mostMasked {
				denied = append(denied, *m.Denial(name, change))
			}
		}
	}
	find(v.profile.Masks.Hidden, false)
	find(v.profile.Masks.Fixed, true)
	return denied
}

// namedIn returns the name that a text has for a path: from the directory of the command, from
// the workspace, absolute, or its last part where a program has changed directory; "" =
// none. The name is returned as the command can use it.
func (v *invocation) namedIn(text, path string) string {
	for _, dir := range []string{v.dir, v.tool.options.Workspace} {
		if !within(path, dir) || path == dir {
			continue
		}
		if hasName(text, path[len(strings.TrimSuffix(dir, "/"))+1:]) {
			return v.relative(path)
		}
	}
	if strings.Contains(text, path) || hasName(text, filepath.Base(path)) {
		return v.relative(path)
	}
	return ""
}

// relative is a path from the directory of the command, if it is in there.
func (v *invocation) relative(path string) string {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(v.dir, "/")+"/"); ok {
		return rest
	}
	return path
}

// hasName reports whether a text has a name that is not a part of a longer one. What comes
// before may be the directory that it is in.
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

// continues reports whether a name goes on in what follows it. A dot at the end of a sentence
// is no part of it.
func continues(after string) bool {
	after = strings.TrimPrefix(after, ".")
	return after != "" && inName(after[0])
}

func inName(c byte) bool {
	letter := c|0x20 >= 'a' && c|0x20 <= 'z'
	digit := c >= '0' && c <= '9'
	return letter || digit || c >= 0x80 || slices.Contains([]byte("_-."), c)
}

// replaced is a masked file in whose place another came.
func replaced(m sandbox.Mask) sandbox.Denial {
	d := m.Denial(m.Path, false)
	d.Exact = true
	d.Hint = "it was replaced while this call ran, which the mask over it did not outlive, so the call was ended at once (rule " + m.Rule + "); run it again"
	return *d
}
