package helper

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxTasks bounds how many threads of a process are looked at.
const maxTasks = 64

// inputSource is the file from which a call's processes take what a person sends.
type inputSource struct {
	known         bool
	device, inode uint64
}

// noteInput remembers what standard input is, before it is let go.
func (h *holder) noteInput() {
	var st unix.Stat_t
	if err := unix.Fstat(0, &st); err == nil {
		h.input = inputSource{true, uint64(st.Dev), st.Ino}
	}
}

// isTTY reports whether st is /dev/tty, by which every process of a call opens
// its controlling terminal.
func isTTY(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(5, 0)
}

// opened tells what a process has under a descriptor: the call's input, and if
// so whether as /dev/tty.
func (h *holder) opened(pid int, fd string) (input, tty bool) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/fd/"+fd, &st); err != nil || !h.input.known {
		return false, false
	}
	tty = h.spec.Terminal && isTTY(&st)
	return tty || uint64(st.Dev) == h.input.device && st.Ino == h.input.inode, tty
}

// waiting looks for a process that waits for input, in what the kernel knows: it
// sleeps in a read of the call's terminal or pipe, or in a poll while the
// terminal gives single keys. A reader goes before one that polls.
//
// A process is missed whose state the kernel does not show to its equal: one of
// another user, as sudo starts them in an unconfined call, and any where
// kernel.yama.ptrace_scope is 2 or more.
func (h *holder) waiting() Event {
	found := Event{Kind: EventWaiting}
	group, ok := h.foreground()
	if !ok || !h.input.known {
		return found
	}
	keys, hidden := h.terminalMode()
	for _, p := range h.members() {
		if p.State != 'S' || h.spec.Terminal && p.Group != group {
			continue
		}
		e, ok := h.look(p, keys, hidden)
		if !ok || found.Wait != "" && !e.Reads {
			continue
		}
		found = e
		if e.Reads {
			break
		}
	}
	return found
}

// look tells whether one process waits for input, and how.
func (h *holder) look(p Proc, keys, hidden bool) (Event, bool) {
	tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(p.PID) + "/task")
	e := Event{Kind: EventWaiting, Members: []Member{{PID: p.PID}}}
	for _, task := range tasks[:min(len(tasks), maxTasks)] {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/task/" + task.Name() + "/syscall")
		if err != nil {
			continue
		}
		call, fd, ok := parseSyscall(string(b))
		switch {
		case !ok:
		case call == unix.SYS_READ || call == unix.SYS_READV:
			if input, tty := h.opened(p.PID, strconv.Itoa(fd)); input {
				e.Reads, e.Sole = true, len(tasks) == 1
				hidden = hidden || tty
			}
		case keys && slices.Contains(pollCalls(), call):
			e.Wait = WaitKeys
		}
	}
	switch {
	case e.Reads && keys:
		e.Wait = WaitKeys
	case e.Reads && hidden:
		e.Wait = WaitPassword
	case e.Reads:
		e.Wait = WaitLine
	case e.Wait != "" && !h.holdsInput(p.PID):
		return Event{}, false
	}
	e.Members[0].Command = describe(p)
	return e, e.Wait != ""
}

// holdsInput reports whether a process has the terminal open for reading, by
// all that can be told: under another number than those of the outputs.
func (h *holder) holdsInput(pid int) bool {
	fds, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	for _, fd := range fds[:min(len(fds), maxTasks)] {
		if name := fd.Name(); name != "1" && name != "2" {
			if input, _ := h.opened(pid, name); input {
				return true
			}
		}
	}
	return false
}

// terminalMode reads how the terminal gives input: single keys or lines, and
// whether a program has turned off what only one that asks for a secret turns
// off. Echo itself tells nothing: it is off from the start.
func (h *holder) terminalMode() (keys, hidden bool) {
	if !h.spec.Terminal {
		return false, false
	}
	t, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return false, false
	}
	return t.Lflag&unix.ICANON == 0, t.Lflag&unix.ECHOK == 0 || t.Lflag&unix.ISIG == 0
}

// parseSyscall reads /proc/PID/syscall (proc_pid_syscall(5)): the number of the
// call in which the thread sleeps, and its first argument as a descriptor.
func parseSyscall(s string) (call, fd int, ok bool) {
	f := strings.Fields(s)
	if len(f) < 2 {
		return 0, 0, false // "running"
	}
	call, err := strconv.Atoi(f[0])
	if err != nil || call < 0 {
		return 0, 0, false // -1: it sleeps outside of any call
	}
	first, err := strconv.ParseUint(strings.TrimPrefix(f[1], "0x"), 16, 64)
	if err != nil || first > 1<<30 {
		return call, -1, true
	}
	return call, int(first), true
}
