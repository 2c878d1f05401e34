package helper

import (
	"os"
	"strconv"
	"strings"
)

// mostWatchers is how many instances of inotify(7) a call may have. By default a user
// has 128 on the whole machine.
const mostWatchers = 64

// boundUser limits what a call can take of what the kernel counts by user, across all
// namespaces: other programs of the user need some of it, and what watches the
// workspace does. It also makes the kernel refuse nested namespaces, beside the
// filter. The settings are those of the call's own user namespace (namespaces(7),
// "The /proc/sys/user directory"); where they cannot be written, as where a container
// has /proc/sys read-only, the machine's hold.
func boundUser(s *Spec) {
	if !s.Namespaces {
		return
	}
	watches := 4096
	if b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches"); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			watches = n / 2
		}
	}
	for name, most := range map[string]int{
		"max_user_namespaces": 0, "max_inotify_instances": mostWatchers, "max_inotify_watches": watches,
	} {
		_ = os.WriteFile("/proc/sys/user/"+name, strconv.AppendInt(nil, int64(most), 10), 0)
	}
}
