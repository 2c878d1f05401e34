package helper

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxTasks limits how many threads of a process are read.
const maxTasks = 64

// fileID identifies an open file. The zero value matches none.
type fileID struct{ device, inode uint64 }

type inputFiles struct {
	in  fileID // the terminal or pipe that receives input
	err fileID // second terminal, for standard error, which receives no input
}

func identify(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

// noteInput records the files before they are closed.
func (h *supervisor) noteInput() {
	var in, err unix.Stat_t
	if unix.Fstat(0, &in) != nil || unix.Fstat(2, &err) != nil {
		return
	}
	h.input.in = identify(&in)
	if h.spec.Terminal && identify(&err) != h.input.in {
		h.input.err = identify(&err)
	}
}

// target is what a descriptor of a process refers to.
type target int

const (
	elsewhere   target = iota
	inputItself        // the call's terminal or pipe
	devTTY             // the same terminal, opened as /dev/tty
	errTerminal
)

// leads returns what a descriptor of a process refers to.
func (h *supervisor) leads(pid int, fd string) target {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/fd/"+fd, &st); err != nil {
		return elsewhere
	}
	switch id := identify(&st); {
	case h.spec.Terminal && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(5, 0):
		return devTTY
	case id == h.input.in:
		return inputItself
	case id == h.input.err:
		return errTerminal
	}
	return elsewhere
}

// waiting finds a process that waits for input, by its state in the kernel: it sleeps in a read of the call's
// terminal or pipe, or in a poll while the terminal is in single-key mode. Readers take precedence.
//
// It misses processes that the kernel does not let it inspect: those of another user, such as those started by sudo
// in an unconfined call, and all if kernel.yama.ptrace_scope is 2 or more.
func (h *supervisor) waiting() Event {
	found := Event{Kind: EventWaiting}
	group, ok := h.foreground()
	if !ok || h.input.in == (fileID{}) {
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

func (h *supervisor) look(p Proc, keys, hidden bool) (Event, bool) {
	tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(p.PID) + "/task")
	e := Event{Kind: EventWaiting, Members: []Member{{PID: p.PID}}}
	for _, task := range tasks[:min(len(tasks), maxTasks)] {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/task/" + task.Name() + "/syscall")
		call, fd, ok := parseSyscall(string(b)) // false also if it cannot be read
		switch {
		case !ok:
		case call == unix.SYS_READ || call == unix.SYS_READV:
			at := h.leads(p.PID, strconv.Itoa(fd))
			e.Reads = e.Reads || at != elsewhere
			e.Sole = e.Reads && len(tasks) == 1
			e.Deaf = e.Deaf || at == errTerminal
			hidden = hidden || at == devTTY
		case keys && slices.Contains(pollCalls(), call):
			e.Wait = WaitKeys
		}
	}
	switch {
	case e.Reads:
		e.Wait = readsFor(keys || e.Deaf, hidden)
	case e.Wait != "" && !h.readsInput(p.PID):
		return Event{}, false
	}
	e.Members[0].Command = describe(p)
	return e, e.Wait != ""
}

// readsFor returns what a read waits for; see terminalMode.
func readsFor(keys, hidden bool) string {
	switch {
	case keys:
		return WaitKeys
	case hidden:
		return WaitPassword
	}
	return WaitLine
}

// readsInput reports whether a process probably has the terminal open for reading: on a descriptor other than those
// of the outputs.
func (h *supervisor) readsInput(pid int) bool {
	fds, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	for _, fd := range fds[:min(len(fds), maxTasks)] {
		if name := fd.Name(); name != "1" && name != "2" {
			if at := h.leads(pid, name); at == inputItself || at == devTTY {
				return true
			}
		}
	}
	return false
}

// terminalMode returns whether the terminal is in single-key mode, and whether a program has set what only a prompt
// for a secret sets. ECHO does not count, since it is off from the start.
func (h *supervisor) terminalMode() (keys, hidden bool) {
	if !h.spec.Terminal {
		return false, false
	}
	t, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return false, false
	}
	return t.Lflag&unix.ICANON == 0, t.Lflag&unix.ECHOK == 0 || t.Lflag&unix.ISIG == 0
}

// parseSyscall parses /proc/PID/syscall (proc_pid_syscall(5)): the number of the system call in which the thread
// sleeps, and its first argument as a descriptor.
func parseSyscall(s string) (call, fd int, ok bool) {
	f := strings.Fields(s)
	if len(f) < 2 {
		return 0, 0, false // "running"
	}
	call, err := strconv.Atoi(f[0])
	if err != nil || call < 0 {
		return 0, 0, false // -1: it sleeps outside of a system call
	}
	first, err := strconv.ParseUint(strings.TrimPrefix(f[1], "0x"), 16, 64)
	if err != nil || first > 1<<30 {
		return call, -1, true
	}
	return call, int(first), true
}
