package bash

import (
	"os"
	"strings"

	"github.com/toold/toold/policy"
)

// ownScratch marks the files in the private /tmp of the call, which no rule need allow. A path that
// exists in the host's /tmp is judged.
func (t *tool) ownScratch(effects []policy.Effect) {
	for i := range effects {
		e := &effects[i]
		if (e.Kind == policy.Read || e.Kind == policy.Write) && !e.Unknown && e.Canonical == e.Path && t.options.Profile.Scratch(e.Path) && !onHost(e.Path) {
			e.Possible = true
		}
	}
}

// onHost reports whether the first name below a directory for temporary files exists on the host, or
// cannot be checked.
func onHost(path string) bool {
	for _, dir := range []string{"/var/tmp/", "/tmp/"} {
		if rest, below := strings.CutPrefix(path, dir); below {
			first, _, _ := strings.Cut(rest, "/")
			_, err := os.Lstat(dir + first)
			return !os.IsNotExist(err)
		}
	}
	return true
}
