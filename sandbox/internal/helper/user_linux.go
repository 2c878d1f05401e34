package helper

import (
	"fmt"
	"os"
)

// nameUser maps the daemon's user and group to themselves in the new user namespace (user_namespaces(7)). It denies
// setgroups before it maps the group.
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
	// Otherwise the first call could write it, and others not. If this fails, that would fail too.
	_ = os.WriteFile("/proc/self/projid_map", []byte("0 0 1"), 0)
	return nil
}
