package bash

import (
	"os"
	"strings"

	"github.com/toold/toold/policy"
)

// ownScratch marks the files that a script keeps in the private /tmp of its call:
// they are gone with the call, so that no rule need allow them. Rules that ask or
// deny hold all the same.
//
// What lies in the host's folder of that name is not there for the call; a path that
// leads into it was meant otherwise, and is judged like any other.
func (t *tool) ownScratch(effects []policy.Effect) {
	for i := range effects {
		e := &effects[i]
		if (e.Kind == policy.Read || e.Kind == policy.Write) && !e.Unknown && e.Canonical == e.Path && t.options.Profile.Scratch(e.Path) && !onHost(e.Path) {
			e.Possible = true
		}
	}
}

// onHost reports whether what a path begins with below its folder for temporary
// files is there, or cannot be looked for. The folder itself always is.
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
