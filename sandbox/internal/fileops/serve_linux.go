package fileops

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Serve is the main function of a worker. It returns the exit status when the listener is closed. It starts no
// process, since a child could keep a file open for writing.
func Serve() int {
	unix.CloseOnExec(ListenerFD)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 125
	}
	listener := end{socket: ListenerFD}
	for {
		_, fds, err := listener.receive()
		if err != nil {
			return 0
		}
		for _, fd := range fds {
			// Ends when the other end is closed, at the latest with the process.
			go (&handler{end: end{socket: fd}}).serve()
		}
	}
}

type handler struct {
	end
	change  Change
	pending *PendingFile // of change; may be nil
}

func (a *handler) serve() {
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

// answer carries out a request. It closes the descriptors.
func (a *handler) answer(q question, fds []int) error {
	if !q.takes(len(fds)) {
		closeAll(fds)
		return errGarbled
	}
	switch q.kind {
	case askOpen:
		return a.answerOpened(Open(q.path))
	case askOpenDir:
		return a.answerOpened(OpenDir(q.path))
	case askBegin:
		if err := a.begin(q, fds); err != nil {
			return a.send(answerOf(err))
		}
		return a.send(answerOf(nil), int(a.pending.File.Fd()))
	case askCommit:
		if a.pending == nil {
			return errGarbled
		}
		err := a.pending.Commit()
		a.drop()
		return a.send(answerOf(err))
	case askRemove:
		old := os.NewFile(uintptr(fds[0]), "old")
		defer old.Close()
		return a.send(answerOf(Remove(Change{Path: q.path, Old: old, Seen: q.seen})))
	case askDiscard:
		a.drop()
		return a.send(answerOf(nil))
	}
	return errGarbled
}

func (a *handler) answerOpened(fd int, err error) error {
	if err != nil {
		return a.send(answerOf(err))
	}
	defer unix.Close(fd)
	return a.send(answerOf(nil), fd)
}

// begin creates a pending file. The first descriptor has the content, the second is the old file.
func (a *handler) begin(q question, fds []int) (err error) {
	a.drop()
	content := os.NewFile(uintptr(fds[0]), "content")
	defer content.Close()
	a.change = Change{Path: q.path, Parents: q.parents, Private: q.private, Seen: q.seen}
	if q.old {
		a.change.Old = os.NewFile(uintptr(fds[1]), "old")
	}
	// Given the file itself, Copy would use system calls with other errors.
	a.pending, err = Begin(a.change, io.NewSectionReader(content, 0, 1<<62))
	if err != nil {
		a.drop()
	}
	return err
}

func (a *handler) drop() {
	if a.pending != nil {
		a.pending.Discard()
	}
	a.change.Old.Close() // nil is allowed
	a.pending, a.change = nil, Change{}
}
