package regular

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Serve is the whole life of a worker: it takes connections at the door, answers
// what is asked on each, and returns the exit status when the door is closed. It
// starts no process, so that nobody else can hold a file open that it writes.
func Serve() int {
	if kind, err := unix.GetsockoptInt(Door, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
		fmt.Fprintln(os.Stderr, "toold: "+Marker+" is for toold itself; run toold without it")
		return 125
	}
	unix.CloseOnExec(Door)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 125
	}
	door := end{socket: Door}
	for {
		_, fds, err := door.receive()
		if err != nil {
			return 0
		}
		for _, fd := range fds {
			// Ends when its other end is closed, at the latest with the process.
			go (&attendant{end: end{socket: fd}}).serve()
		}
	}
}

type attendant struct {
	end
	change Change
	draft  *Draft // of change, begun and not yet committed; may be nil
}

// serve answers until the other end is closed. What was begun then is discarded.
func (a *attendant) serve() {
	defer unix.Close(a.socket)
	defer a.drop()
	for {
		b, fds, err := a.receive()
		if err != nil {
			return
		}
		q, err := decodeQuestion(b)
		if err != nil {
			closeAll(fds)
			return
		}
		if a.answer(q, fds) != nil {
			return
		}
	}
}

// answer does what is asked. It takes the descriptors over.
func (a *attendant) answer(q question, fds []int) error {
	switch {
	case q.kind == askOpen && len(fds) == 0:
		return a.answerOpened(Open(q.path))
	case q.kind == askOpenDir && len(fds) == 0:
		return a.answerOpened(OpenDir(q.path))
	case q.kind == askBegin && len(fds) == 1 && !q.old, q.kind == askBegin && len(fds) == 2 && q.old:
		if err := a.begin(q, fds); err != nil {
			return a.send(answerOf(err))
		}
		return a.send(answerOf(nil), int(a.draft.File.Fd()))
	case q.kind == askCommit && len(fds) == 0 && a.draft != nil:
		err := a.draft.Commit()
		a.drop()
		return a.send(answerOf(err))
	case q.kind == askRemove && len(fds) == 1 && q.old:
		old := os.NewFile(uintptr(fds[0]), "old")
		defer old.Close()
		return a.send(answerOf(Remove(Change{Path: q.path, Old: old, Seen: q.seen})))
	case q.kind == askDiscard && len(fds) == 0:
		a.drop()
		return a.send(answerOf(nil))
	}
	closeAll(fds)
	return errGarbled
}

// answerOpened answers with a descriptor, which it closes, or with why there is none.
func (a *attendant) answerOpened(fd int, err error) error {
	if err != nil {
		return a.send(answerOf(err))
	}
	defer unix.Close(fd)
	return a.send(answerOf(nil), fd)
}

// begin makes a draft. The first descriptor has the content, the second is the old file.
func (a *attendant) begin(q question, fds []int) (err error) {
	a.drop()
	content := os.NewFile(uintptr(fds[0]), "content")
	defer content.Close()
	a.change = Change{Path: q.path, Parents: q.parents, Private: q.private, Seen: q.seen}
	if q.old {
		a.change.Old = os.NewFile(uintptr(fds[1]), "old")
	}
	// Not the file itself: Copy would take shortcuts, whose errors read differently.
	a.draft, err = Begin(a.change, io.NewSectionReader(content, 0, 1<<62))
	if err != nil {
		a.drop()
	}
	return err
}

// drop lets the draft go, and the old file.
func (a *attendant) drop() {
	if a.draft != nil {
		a.draft.Discard()
	}
	a.change.Old.Close() // allowed on nil
	a.draft, a.change = nil, Change{}
}
