package protect

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// watches returns the maximum number of watches. It leaves a share of the kernel's limit to other programs.
func (o Options) watches() int {
	if o.Watches > 0 {
		return o.Watches
	}
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	n, err2 := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || err2 != nil {
		return 4096
	}
	return min(n/2, 1<<16)
}

// Unwatched returns why some directories are not watched, as a sentence, or "" if all are. Unwatched directories are
// searched at the end of each call. unseen means that a search is not complete; it continues in the background, or in
// the next Watcher of these roots.
func (w *Watcher) Unwatched() (why string, unseen bool) {
	if w == nil {
		return "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	unseen = w.tree.pending() || w.late != nil
	return reasonUnwatched(len(w.tree.unwatched), len(w.tree.deep), unseen), unseen
}

func reasonUnwatched(unwatched, deep int, unseen bool) string {
	if deep > 0 {
		below := fmt.Sprintf("%d directories of the workspace are below %d others, deeper than toold looks: what is in them under a protected name is neither protected nor removed, and no rule hides it from calls (move them up, or remove them)", deep, Deepest)
		return strings.TrimPrefix(reasonUnwatched(unwatched, 0, unseen)+". "+below, ". ")
	}
	switch {
	case !unseen && unwatched == 0:
		return ""
	case unseen && unwatched == 0:
		return "So much changed in the workspace at once that it is still being searched. What appeared under a protected name is removed as soon as it is found; until then do not trust it"
	case unseen:
		return fmt.Sprintf("%d directories of the workspace are not watched, more than can be searched before a call returns. What appeared in them under a protected name is removed as soon as it is found; until then do not trust it (raise fs.inotify.max_user_watches, or work in a smaller directory)", unwatched)
	}
	return fmt.Sprintf("%d directories of the workspace are not watched, but searched at the end of each call (fs.inotify.max_user_watches is used up)", unwatched)
}

// Survey counts the directories that a Watcher of these roots would watch, and returns what its Unwatched would. It has
// no side effects.
func Survey(o Options) (directories int, why string, unseen bool) {
	w := newState(o)
	w.tree.most = 0
	for _, root := range o.Roots {
		w.addRoot(root)
	}
	for w.search(piece) {
	}
	directories = len(w.tree.unwatched)
	unwatched := max(0, directories-o.watches())
	unseen = unwatched > maxUnwatched
	return directories, reasonUnwatched(unwatched, len(w.tree.deep), unseen), unseen
}
