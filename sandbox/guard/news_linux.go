package guard

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// pump takes all news that have come until now. Those that come meanwhile may be
// left for the next time: a call that writes without end must not hold up others.
func (g *Guard) pump() {
	if g.closed {
		return
	}
	for _, n := range g.read() {
		g.handle(n)
	}
	if g.lost {
		g.lost = false
		g.everything()
	}
}

// news is what happened under a name of a watched folder.
type news struct {
	wd   int32
	name string
	mask uint32 // of all that happened there
}

// read reads what has come until now, in the order in which each name was told
// first. What is told of a name again and again is one thing: what counts is what is
// there now, and programs rename without end.
func (g *Guard) read() []news {
	size, err := unix.IoctlGetInt(g.fd, unix.TIOCINQ)
	if err != nil || size == 0 {
		return nil
	}
	var list []news
	known := map[news]int{} // without a mask: where in the list it is
	buf := make([]byte, 64<<10)
	for taken := 0; taken < size; {
		n, err := unix.Read(g.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		taken += n
		list = merge(list, known, buf[:n])
	}
	return list
}

// merge adds a block of struct inotify_event (inotify(7)).
func merge(list []news, known map[news]int, b []byte) []news {
	for len(b) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(b))
		mask := binary.NativeEndian.Uint32(b[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		if end > len(b) {
			break
		}
		name := bytes.TrimRight(b[unix.SizeofInotifyEvent:end], "\x00")
		b = b[end:]
		if i, again := known[news{wd: wd, name: string(name)}]; again {
			list[i].mask |= mask
			continue
		}
		n := news{wd: wd, name: string(name)}
		known[n] = len(list)
		n.mask = mask
		list = append(list, n)
	}
	return list
}

func (g *Guard) handle(n news) {
	switch f := g.tree.watch[n.wd]; {
	case n.mask&unix.IN_Q_OVERFLOW != 0:
		g.lost = true
	case f == nil: // of a watch that was given up
	case n.mask&unix.IN_IGNORED != 0:
		g.forget(f)
	case n.name != "":
		g.event(f, n.name, n.mask)
	}
}

// event looks at what is under the name now; what it was when the news was made
// does not matter any more.
func (g *Guard) event(f *folder, name string, mask uint32) {
	if mask&(unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_DELETE) != 0 {
		// Under this name is another folder now, or none.
		if old := f.children[name]; old != nil {
			g.forget(old)
		}
	}
	path := f.path() + "/" + name
	if g.leads(path) {
		g.existing = nil
	}
	if _, noted := g.links[path]; mask&unix.IN_ISDIR == 0 && f.kind == plain && !f.bare && !g.matters(f, name) && !noted {
		return
	}
	mode, ok := modeOf(path)
	if !ok {
		return
	}
	sub := g.meet(f, name, mode.Type())
	g.uncover(path)
	if sub != nil {
		g.scan([]*folder{sub})
	}
	if f.kind == plain && !f.bare && isBare(func(name string) bool { _, ok := modeOf(f.path() + "/" + name); return ok }) {
		g.becomeBare(f)
		g.scan(g.enter(f))
	}
}

// matters tells whether a file of the project has a name that matters.
func (g *Guard) matters(f *folder, name string) bool {
	return name == ".git" || name == "HEAD" || name == "commondir" || f.obeyed && slices.Contains(g.names.plain, name)
}

// everything looks again at each folder, after news were lost.
func (g *Guard) everything() {
	next := []*folder{}
	for f := range g.tree.holders {
		if f.root {
			next = append(next, f)
		}
	}
	for len(next) > 0 {
		f := next[0]
		next = next[1:]
		found := g.enter(f)
		if f.kind == ignored {
			next = append(next, found...) // what is in its place
		}
		for _, sub := range f.children {
			next = append(next, sub)
		}
	}
}

// mostDark is how many unwatched folders are looked through at the end of a call.
// A hundred thousand take about a second.
const mostDark = 200_000

// lookAgain looks through as many of the folders that are not watched and wait for
// it.
func (g *Guard) lookAgain(most int) {
	next := g.tree.unseen
	for ; len(next) > 0 && most > 0; most-- {
		f := next[0]
		next = append(next[1:], g.enter(f)...)
	}
	if g.tree.unseen = next; len(next) == 0 {
		g.tree.unseen = nil
		g.tree.limit = len(g.tree.dark) > 0
	}
}

// modeOf is the type of what is at a path; 0 and false where nothing is.
func modeOf(path string) (fs.FileMode, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode(), true
}
