package helper

import (
	"fmt"
	"os"
)

// nameUser gives the daemon's user and group their own numbers in the new user namespace
// (user_namespaces(7)): for the group only once groups cannot be given up.
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
	// A call could write it, once, and the next one no more. Where this fails, so does that.
	_ = os.WriteFile("/proc/self/projid_map", []byte("0 0 1"), 0)
	return nil
}
