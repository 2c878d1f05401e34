package helper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A shell can start before its script is known. bash reads the file named by BASH_ENV before the string of -c, which
// it reads from its argument memory. So BASH_ENV names a pipe, on which bash waits, and the argument of -c is a
// placeholder with room for a script. The script is then written over the placeholder, the pipe delivers commands
// that remove the traces of the wait, and bash continues as if it had just started.
//
// A script can still see NUL bytes after the arguments and the environment in the shell's own /proc/PID and, before
// its first command has ended, PIPESTATUS, BASH_ARGC and SECONDS in a listing of all variables, which a new shell
// creates on first use.

// The script is set in two steps. OrderSetScript delivers the commands. OrderGo writes the script over the placeholder
// and lets bash continue. So if the daemon ends in between, the shell can only run the placeholder.

// placeholder is what bash would run if it did not wait. It never succeeds.
const placeholder = "kill -KILL $$; #"

// waitFD is the shell's descriptor of the pipe.
const waitFD = 3

type warmShell struct {
	room  int
	entry string // in its environment
	read  int    // the helper's ends of the pipe
	write int
	inode uint64

	script uintptr // address in the shell's memory

	text string // what release writes
	has  bool   // setScript succeeded
}

func (s *Spec) prepareWarm() (*warmShell, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fds[0], &st); err != nil {
		return nil, err
	}
	w := &warmShell{
		room: int(s.Room), entry: fmt.Sprintf("BASH_ENV=/dev/fd/%d", waitFD),
		read: fds[0], write: fds[1], inode: st.Ino,
	}
	s.Argv = append(s.Argv, w.placeholder())
	s.Env = append(s.Env[:len(s.Env):len(s.Env)], w.entry)
	return w, nil
}

func (w *warmShell) placeholder() string {
	return placeholder + strings.Repeat(" ", max(0, w.room-len(placeholder)))
}

// waitWithin limits the start of a shell, which is checked every lookAgain. Both are long, since no caller waits.
const (
	waitWithin = time.Minute
	lookAgain  = time.Millisecond
)

// await waits until the shell waits, finds its script in memory, and removes the room behind the placeholder and the
// variable.
func (w *warmShell) await(shell int) error {
	for begin := time.Now(); !w.waits(shell); time.Sleep(lookAgain) {
		if time.Since(begin) > waitWithin {
			return errors.New("the shell does not read the file that BASH_ENV names")
		}
	}
	argEnd, envEnd, err := argumentEnds(shell)
	if err != nil {
		return err
	}
	if w.script, err = find(shell, argEnd, w.placeholder()); err != nil {
		return err
	}
	environment, err := find(shell, envEnd, w.entry)
	if err != nil {
		return err
	}
	behind := make([]byte, max(0, w.room-len(placeholder))+1)
	if err := store(shell, w.script+uintptr(len(placeholder)), behind); err != nil {
		return err
	}
	return store(shell, environment, make([]byte, len(w.entry)))
}

// waits reports whether the shell is blocked in a read of the pipe (proc_pid_syscall(5)).
func (w *warmShell) waits(shell int) bool {
	proc := "/proc/" + strconv.Itoa(shell)
	b, _ := os.ReadFile(proc + "/syscall")
	call, fd, ok := parseSyscall(string(b)) // false also if it cannot be read
	if !ok || call != unix.SYS_READ {
		return false
	}
	name, err := os.Readlink(proc + "/fd/" + strconv.Itoa(fd))
	return err == nil && name == fmt.Sprintf("pipe:[%d]", w.inode)
}

// argumentEnds returns arg_end and env_end of a process (proc_pid_stat(5)).
func argumentEnds(pid int) (argEnd, envEnd uintptr, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // f[0] is field 3
	if len(f) < 49 {
		return 0, 0, errStat
	}
	arg, err1 := strconv.ParseUint(f[46], 10, 64)
	env, err2 := strconv.ParseUint(f[48], 10, 64)
	return uintptr(arg), uintptr(env), errors.Join(err1, err2)
}

// find returns the address of text if it ends with a NUL at end.
func find(pid int, end uintptr, text string) (uintptr, error) {
	b := make([]byte, len(text)+1)
	at := end - uintptr(len(b))
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: at, Len: len(b)}}, 0)
	if err != nil {
		return 0, fmt.Errorf("cannot read the shell's memory: %w", err)
	}
	if n != len(b) || string(b) != text+"\x00" {
		return 0, errors.New("the shell's arguments do not lie where the kernel says")
	}
	return at, nil
}

func store(pid int, at uintptr, b []byte) error {
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: at, Len: len(b)}}, 0)
	if err != nil {
		return fmt.Errorf("cannot write the shell's memory: %w", err)
	}
	if n != len(b) {
		return errors.New("cannot write the shell's memory: it ends too early")
	}
	return nil
}

// setScript lets the shell prepare for the script, which it does not have yet.
func (w *warmShell) setScript(shellName, script string) error {
	if len(script) > w.room || strings.IndexByte(script, 0) >= 0 {
		return errors.New("the script does not fit the waiting shell")
	}
	w.text, w.has = script, true
	for b := []byte(prelude(shellName, script)); len(b) > 0; {
		n, err := unix.Write(w.write, b)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}

// release replaces the placeholder by the script and lets the shell run it.
func (w *warmShell) release(shell int) error {
	if !w.has {
		return errors.New("no script was given")
	}
	text := make([]byte, max(len(w.text), len(placeholder)))
	copy(text, w.text)
	if err := store(shell, w.script, text); err != nil {
		return err
	}
	return unix.Close(w.write)
}

func (w *warmShell) close() {
	if w != nil {
		unix.Close(w.write)
	}
}

// prelude returns commands that restore the descriptors and variables of a new shell.
func prelude(shellName, script string) string {
	return fmt.Sprintf("exec %d<&-\nunset BASH_ENV\nBASH_EXECUTION_STRING=%s\nSECONDS=0\n: %s\n",
		waitFD, quote(script), quote(shellName))
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// mustWait reports to the daemon when the shell waits. On failure, the call ends before it began.
func (h *supervisor) mustWait() {
	if err := h.warm.await(h.shell); err != nil {
		send(failure(stage("let a shell wait for its script", err)))
		h.end(125)
	}
	if h.site.base != nil {
		h.present = h.spec.present()
	}
	send(Event{Kind: EventStarted, ABI: h.abi, Brokered: h.broker != nil})
}

func (h *supervisor) setScript(script string) {
	err := errors.New("no shell waits for a script")
	switch {
	case h.site.base != nil && (h.site.base.changed() || !h.spec.areClosed(h.present)):
		err = errors.New("a mount of its view is gone, or has moved")
	case h.warm != nil && !h.warm.has:
		err = h.warm.setScript(h.spec.Argv[0], script)
	}
	if err != nil {
		h.refuse(err)
	}
	send(Event{Kind: EventScriptSet})
	h.shared.least = sharedNow() // while the daemon has something to do
}

// release lets the warm shell run its script. Without a script, nothing runs.
func (h *supervisor) release() {
	err := errors.New("no shell waits for a script")
	if h.warm != nil {
		err = h.warm.release(h.shell)
	}
	if err != nil {
		h.refuse(err)
	}
	h.warm = nil
	h.watch()
}

// refuse ends the call of a shell that has not started its script.
func (h *supervisor) refuse(why error) {
	send(failure(stage("give the shell its script", why)))
	h.end(125)
}

// awaitGo waits until the daemon lets the command start, with the first order after OrderRun. The first file is the
// permit, which the daemon may have revoked; others are the command's.
func (h *supervisor) awaitGo(files []uintptr) (others []uintptr, err error) {
	if len(files) == 0 {
		return nil, errGarbled
	}
	permit := int(files[0])
	defer unix.Close(permit)
	buf := make([]byte, 64)
	n, fds, err := receive(ControlFD, buf)
	if order, bad := DecodeOrder(buf[:max(n, 0)]); err != nil || bad != nil || order.Kind != OrderGo {
		return nil, errGarbled
	}
	h.lend(fds)
	for {
		if _, err = unix.Read(permit, buf); !errors.Is(err, unix.EINTR) {
			return files[1:], err
		}
	}
}

func (h *supervisor) watch() {
	if h.spec.MemoryBytes > 0 || h.spec.Processes > 0 {
		// Ends with the call.
		h.tasks.Go(h.watchUsage)
	}
	if h.site.base != nil && len(h.spec.Hide)+len(h.spec.Protect) > 0 {
		// Ends with the call.
		h.tasks.Go(h.keepCovered)
	}
}
