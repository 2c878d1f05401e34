package helper

import (
	"fmt"
	"os"
)

// nameUser gives the daemon's user and group their own numbers in the user namespace
// that the helper is the first in, where nobody has one yet (user_namespaces(7)). It
// may do that for itself and nobody else, and for its group only once groups cannot be
// given up.
func nameUser(s *Spec) error {
	for _, m := range []struct{ file, text string }{
		{"setgroups", "deny"},
		{"uid_map", fmt.Sprintf("%[1]d %[1]d 1", s.User)},
		{"gid_map", fmt.Sprintf("%[1]d %[1]d 1", s.Group)},
	} {
		if err := os.WriteFile("/proc/self/"+m.file, []byte(m.text), 0); err != nil {
			return err
		}
	}
	return nil
}
