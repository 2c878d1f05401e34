package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// bwrapPath is where distributions install bwrap(1), and the path in AppArmor's profile. PATH is not searched, since
// a call may have written to its directories.
const bwrapPath = "/usr/bin/bwrap"

// trustBwrap returns an error if a user other than root can change bwrap, or if calls under p may write its
// directory.
func trustBwrap(p sandbox.Profile) error {
	if p.Mode == sandbox.WorkspaceWrite && p.InRoots(bwrapPath) {
		return fmt.Errorf("calls may write the directory of %s", bwrapPath)
	}
	for _, path := range []string{"/", "/usr", "/usr/bin", bwrapPath} {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return fmt.Errorf("cannot use %s: %w", bwrapPath, err)
		}
		if !rootOwns(&st) || st.Mode&0o022 != 0 {
			return fmt.Errorf("cannot trust %s: %s can be changed by others than root", bwrapPath, path)
		}
		if path == bwrapPath && st.Mode&unix.S_ISUID != 0 {
			return fmt.Errorf("%s runs as root (setuid), and then limits the size of no directory", bwrapPath)
		}
	}
	return nil
}

// rootOwns reports whether root owns a file. In a user namespace that does not map root, root's files have the
// overflow uid (user_namespaces(7)).
func rootOwns(st *unix.Stat_t) bool {
	if st.Uid == 0 {
		return true
	}
	known, err := os.ReadFile("/proc/self/uid_map")
	for line := range strings.Lines(string(known)) {
		if f := strings.Fields(line); err == nil && len(f) == 3 && f[0] == "0" {
			return false
		}
	}
	return err == nil && fmt.Sprint(st.Uid) == setting("kernel/overflowuid") && int(st.Uid) != os.Getuid()
}

func useBwrap(spec *helper.Spec) {
	spec.External = true
	for _, kind := range spec.NamespaceKinds() {
		if name, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			spec.Outside = append(spec.Outside, name)
		}
	}
}

// Descriptors of bwrap.
const (
	bwrapControl = helper.ControlFD + iota // for the helper, as the next
	bwrapProgram
	bwrapArgs
	bwrapInfo
	bwrapCovers // and the following ones
)

// bwrap is a bwrap process, which starts one helper and exits after it.
type bwrap struct {
	said   *os.File    // its standard error
	word   string      // first line of its standard error; set by wait
	helper *os.Process // nil until it is found; by pidfd
	pid    int         // of the helper; valid after helper is released
	pidfd  int         // of the helper, for wait

	// Closed when the helper has been found.
	program      *os.File // this binary, which the sandbox may not contain
	args         *os.File
	info, status *os.File // a pipe from bwrap: its end and the daemon's
	null         *os.File
	covers       []*os.File
}

// newBwrap prepares to start a helper with bwrap, and adds to spec what the helper must verify. The caller must call
// wait, and release what only the start needs.
func newBwrap(c Command, spec *helper.Spec) (*bwrap, error) {
	b := &bwrap{}
	if err := b.prepare(c, spec); err != nil {
		b.letGo()
		b.said.Close() // nil is allowed
		return nil, err
	}
	return b, nil
}

func (b *bwrap) prepare(c Command, spec *helper.Spec) (err error) {
	if b.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return err
	}
	// Opened with O_PATH, since the binary may not be readable.
	program, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b.program = os.NewFile(uintptr(program), "program")
	if b.status, b.info, err = os.Pipe(); err != nil {
		return err
	}
	if b.said, err = memoryFile("said", nil); err != nil {
		return err
	}
	args, err := spec.BwrapArguments(c.terminalName(), b.cover)
	if err != nil {
		return err
	}
	b.args, err = memoryFile("arguments", []byte(strings.Join(args, "\x00")+"\x00"))
	return err
}

// cover creates a file that bwrap mounts over another.
func (b *bwrap) cover() (int, error) {
	file, err := memoryFile("cover", []byte(helper.Cover))
	if err != nil {
		return -1, err
	}
	b.covers = append(b.covers, file)
	return bwrapCovers + len(b.covers) - 1, nil
}

func (b *bwrap) letGo() {
	for _, f := range append([]*os.File{b.null, b.program, b.args, b.info, b.status}, b.covers...) {
		f.Close() // nil is allowed
	}
}

// command returns the bwrap command, which starts this binary as the first process in the namespaces.
func (b *bwrap) command(control *os.File) *exec.Cmd {
	return &exec.Cmd{
		Path: bwrapPath,
		Args: []string{"bwrap", "--info-fd", fmt.Sprint(bwrapInfo), "--args", fmt.Sprint(bwrapArgs), "--", fmt.Sprintf("/proc/self/fd/%d", bwrapProgram), helper.Marker},
		Env:  []string{"GOMAXPROCS=2"}, Dir: "/",
		Stdin: b.null, Stdout: b.null, Stderr: b.said,
		ExtraFiles:  append([]*os.File{control, b.program, b.args, b.info}, b.covers...),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
}

// find waits until bwrap has started the process that becomes the helper.
func (b *bwrap) find(pid int) error {
	b.info.Close() // so that reads end if bwrap exits
	var started struct {
		PID int `json:"child-pid"`
	}
	err := json.NewDecoder(io.LimitReader(b.status, 4<<10)).Decode(&started)
	if err != nil {
		return err // bwrap has exited
	}
	fd, err := unix.PidfdOpen(started.PID, 0)
	if err != nil {
		return err
	}
	found, err := os.FindProcess(started.PID) // uses a pidfd, and so never another process
	row, gone := helper.Process(started.PID)
	if err == nil && gone == nil && row.Parent == pid {
		b.helper, b.pid, b.pidfd = found, started.PID, fd
		return nil
	}
	unix.Close(fd)
	return errors.Join(err, gone, unix.ESRCH) // or the pid was reused
}

// wait waits until bwrap and the helper have exited, and releases everything. It must be called once.
func (b *bwrap) wait() {
	if b == nil {
		return
	}
	if b.helper != nil {
		fds := []unix.PollFd{{Fd: int32(b.pidfd), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		unix.Close(b.pidfd)
		_ = b.helper.Release()
	}
	text := make([]byte, 400)
	n, _ := b.said.ReadAt(text, 0)
	b.word, _, _ = strings.Cut(strings.TrimPrefix(string(text[:n]), "bwrap: "), "\n")
	b.said.Close()
}

// unavailable returns the error of a helper that has exited, with bwrap's message if there is one.
func (p *Process) unavailable(stage string, err error) *sandbox.StageError {
	if p.via != nil && p.via.word != "" {
		stage, err = launcherBwrap, errors.New(p.via.word)
	}
	return unavailable(stage, err)
}

func memoryFile(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(content)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (c Command) terminalName() (name string) {
	if !c.Terminal {
		return ""
	}
	raw, err := c.Stdin.SyscallConn()
	if err != nil {
		return ""
	}
	err = control(raw, func(fd int) (err error) {
		name, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		return err
	})
	if err != nil || !strings.HasPrefix(name, "/dev/") {
		return "" // only ttyname(3) needs it
	}
	return name
}
