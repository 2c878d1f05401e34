package helper

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A hidden or protected file may be replaced while a call runs: most programs save by renaming a new file over the old
// one, and the kernel removes the cover with the old file. A hidden file may also be moved, with its cover, or be new. A
// helper that can still mount covers what has the name then.

// coverWithin is how long a file that is new, or was moved, may be open. The kernel reports covers that are gone.
const coverWithin = 100 * time.Millisecond

// keepCovered covers files again until the call has ended.
func (h *supervisor) keepCovered() {
	runtime.LockOSThread() // a thread that existed before the call; see restrictOthers
	defer runtime.UnlockOSThread()
	b := h.site.base
	fds := []unix.PollFd{{Fd: int32(b.covers), Events: unix.POLLPRI}, {Fd: int32(b.over), Events: unix.POLLIN}}
	for wait := coverWithin; ; {
		_, err := unix.Poll(fds, int(wait.Milliseconds()))
		if err == nil && fds[1].Revents != 0 {
			return
		}
		err = h.spec.hideAgain()
		if err == nil && (fds[0].Revents != 0 || wait < coverWithin) {
			err = h.spec.protectAgain()
		}
		switch wait = coverWithin; {
		case errors.Is(err, unix.ENOENT): // it is being replaced: the kernel reports that before the new file has the name
			wait = time.Millisecond
		case err != nil:
			h.kill()
			return
		}
	}
}

// hideAgain covers hidden paths that exist and are no mount points. In private directories, such files are the call's.
func (s *Spec) hideAgain() error {
	for _, path := range s.Hide {
		private := Covered(path) && !s.inRoot(path)
		if private || !isOpen(path) {
			continue
		}
		if err := s.hide(path); err != nil {
			return err
		}
	}
	return nil
}

// protectAgain leaves links to the daemon, which ends the call.
func (s *Spec) protectAgain() error {
	for _, path := range s.Protect {
		if !isOpen(path) {
			continue
		}
		if err := except(protect(path), unix.ENOTDIR, unix.ELOOP); err != nil {
			return err
		}
	}
	return nil
}

func isOpen(path string) bool {
	attributes, err := attributesOf(path)
	return err == nil && attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
}

// endTasks returns when the tasks of the call have ended.
func (h *supervisor) endTasks() {
	close(h.over)
	var count [8]byte
	if b := h.site.base; b != nil {
		_, _ = unix.Write(b.over, []byte{0, 0, 0, 0, 0, 0, 0, 1})
		defer unix.Read(b.over, count[:])
	}
	h.tasks.Wait()
}
