package helper

import (
	"os"
	"strconv"
	"strings"
)

// mostWatchers limits the inotify(7) instances of a call. The default limit per user is 128.
const mostWatchers = 64

// boundUser limits the resources that the kernel counts per user across all namespaces, since the user's other
// programs and the workspace watcher need some. It also disables nested namespaces, as the filter does. The settings
// are those of the call's user namespace (namespaces(7), "The /proc/sys/user directory"). If they cannot be written,
// as with a read-only /proc/sys in a container, the machine's apply.
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
