package helper

import (
	"os"
	"strconv"
)

// nameUser maps the daemon's user and group to themselves in the new user namespace (user_namespaces(7)). It denies
// setgroups before it maps the group.
func nameUser(s *Spec) error {
	for _, m := range []struct{ file, text string }{
		{"setgroups", "deny"},
		{"uid_map", toItself(s.User)},
		{"gid_map", toItself(s.Group)},
	} {
		if err := os.WriteFile("/proc/self/"+m.file, []byte(m.text), 0); err != nil {
			return err
		}
	}
	// Otherwise the first call could write it, and others not. If this fails, that would fail too.
	_ = os.WriteFile("/proc/self/projid_map", []byte("0 0 1"), 0)
	return nil
}

func toItself(id uint64) string {
	text := strconv.FormatUint(id, 10)
	return text + " " + text + " 1"
}
