//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// broker carries out every connect(2) of a call. A filter cannot see where a socket
// is connected to: the address lies in memory, where another thread can change it
// after it was looked at. So the kernel stops the call and asks the helper
// (seccomp_unotify(2)), which takes a copy of the descriptor and of the address,
// decides on these copies, and connects. The kernel is never told to go on with what
// the program has there by then.
//
// A local socket may be reached that a process of the call listens on, or that is
// listed. A socket of the machine is refused by where it lies: the call cannot have
// made it on a mount that is read-only. In a folder that both can write it is told by
// its listener: see listeners, and connection.finish where the network is shared.
//
// Whoever listens sees the helper as the process that connected (SO_PEERCRED); the
// user is the same. While a connect waits, only signals that end the program
// interrupt it.
type broker struct {
	fd     int        // the kernel's end of the filter
	shared bool       // the call sees the numbers of the machine's processes
	own    bool       // the call has a network of its own: sockets without a path are its own
	listed []fileID   // sockets of the machine that the call may reach
	inside *listeners // used by serve; nil until then, or if nobody tells
	asked  bool       // inside was looked for

	lenders atomic.Pointer[[]int] // the helpers of other calls, whose servers this one may reach; nil = none
	asking  sync.Mutex            // serialises questions to lenders

	refused refusals
	work    sync.WaitGroup // serve, and connections that wait
}

// lend lets the call reach the servers of other calls.
func (b *broker) lend(lenders []int) {
	limit := unix.NsecToTimeval(borrowWithin.Nanoseconds())
	for _, fd := range lenders {
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	}
	if b != nil && b.own && len(lenders) > 0 {
		b.lenders.Store(&lenders)
	}
}

// notification is struct seccomp_notif.
type notification struct {
	id     uint64
	thread uint32
	flags  uint32
	data   struct {
		number, arch uint32
		instruction  uint64
		args         [6]uint64
	}
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// newBroker makes the broker of a call behind the kernel's end of its filter.
func newBroker(s *Spec, fd int) *broker {
	b := &broker{fd: fd, shared: s.Shared, own: s.Loopback}
	for _, path := range s.Sockets {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			b.listed = append(b.listed, identify(&st))
		}
	}
	// Wakes each on the core of the other (since Linux 6.6): a third of the time.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return b
}

// canBroker tells whether the helper can tell the call's own sockets, and may look
// into its processes: Yama allows it to their ancestor, but to nobody in its stricter
// modes.
func canBroker(s *Spec) bool {
	if !s.Namespaces || s.Shared && !s.Loopback {
		return false
	}
	mode, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return err != nil || strings.TrimSpace(string(mode)) < "2"
}

// wait returns when no process of the call is left to ask, and nothing is left of the broker.
func (b *broker) wait() {
	if b != nil {
		b.work.Wait()
	}
}

// serve answers until the call has no process any more, on a thread of its own.
func (b *broker) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer unix.Close(b.fd) // where that is early, every connect fails from then on
	defer func() { b.inside.close() }()
	for b.isAsked() {
		var n notification
		switch e := b.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); e {
		case 0:
			b.answer(&n)
		case unix.ENOENT, unix.EINTR: // who asked is gone
		default:
			return
		}
	}
}

// isAsked waits for a question. It is false when no process of the call is left.
func (b *broker) isAsked() bool {
	fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && fds[0].Revents&unix.POLLIN != 0
		}
	}
}

func (b *broker) control(request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(b.fd), request, uintptr(argument))
	return e
}

// answer connects, or refuses. A connection that has to wait does so elsewhere.
func (b *broker) answer(n *notification) {
	c, err := b.accept(n)
	if err == nil && b.borrows(&c) {
		// Ends with the connection, or when the process that waits is gone.
		b.work.Go(func() { b.borrow(*n, c) })
		return
	}
	if err == nil {
		var waits bool
		if waits, err = c.try(); waits {
			// Ends with the connection, or when the process that waits is gone.
			b.work.Go(func() { b.retry(n.id, c) })
			return
		}
	}
	b.refused.note(&c, err)
	c.close()
	b.reply(n.id, err)
}

func (b *broker) reply(id uint64, err error) {
	r := response{id: id}
	if err != nil {
		no := unix.EACCES
		errors.As(err, &no)
		r.errno = -int32(no)
	}
	// ENOENT: the process that asked was killed meanwhile.
	for b.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) == unix.EINTR {
	}
}

// waits reports whether the process still waits: until then its number is its own.
func (b *broker) waits(id uint64) bool {
	return b.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// accept takes the descriptor and address of a request and decides. c is to be closed.
func (b *broker) accept(n *notification) (c connection, err error) {
	c = connection{socket: -1, file: -1}
	if c.socket, err = takeDescriptor(int(n.thread), int(int32(n.data.args[0]))); err != nil {
		return c, err
	}
	if c.address, err = readAddress(int(n.thread), n.data.args[1], uint32(n.data.args[2])); err != nil {
		return c, err
	}
	domain, err := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX || binary.NativeEndian.Uint16(c.address) != unix.AF_UNIX {
		// No local socket, or an address that no local one takes.
		return c, except(err, unix.ENOPROTOOPT)
	}
	path := c.address[2:]
	if len(path) == 0 || path[0] == 0 {
		if !b.own {
			return c, errRefused
		}
		return c, nil
	}
	if err := c.pin(int(n.thread), unix.ByteSliceToString(path)); err != nil {
		return c, err
	}
	// All of the above was this thread's, not that of one which got its number.
	if !b.waits(n.id) {
		return c, unix.ESRCH
	}
	return c, b.judge(&c)
}

// judge decides on the file of a local socket.
func (b *broker) judge(c *connection) error {
	var st unix.Stat_t
	if err := unix.Fstat(c.file, &st); err != nil {
		return err
	}
	for _, id := range b.listed {
		if id == identify(&st) {
			return nil
		}
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(c.file, &fs); err != nil {
		return err
	}
	if fs.Flags&unix.ST_RDONLY != 0 {
		return errRefused
	}
	c.own = true
	return b.hear(c)
}

// hear looks who listens where the call's own processes can.
func (b *broker) hear(c *connection) error {
	if b.own && !b.asked {
		b.inside, b.asked = newListeners(), true
	}
	if b.inside == nil && b.shared {
		return errRefused
	}
	if b.inside == nil {
		return nil // finish finds out
	}
	if found, err := b.inside.has(c.file); found || err != nil {
		return err
	}
	// Somebody else, or nobody, which programs want to know.
	return c.knock()
}

// takeDescriptor copies a descriptor of a thread. Threads share their descriptors
// unless they have been told not to; kernels before 6.9 know only whole processes,
// and then those of such a thread are not found.
func takeDescriptor(thread, fd int) (int, error) {
	process, err := unix.PidfdOpen(thread, unix.PIDFD_THREAD)
	if errors.Is(err, unix.EINVAL) {
		process, err = unix.PidfdOpen(leaderOf(thread), 0)
	}
	if err != nil {
		return -1, unix.EACCES
	}
	defer unix.Close(process)
	copied, err := unix.PidfdGetfd(process, fd, 0)
	if errors.Is(err, unix.EPERM) {
		err = unix.EACCES // a process that hides from its equals
	}
	return copied, err
}

func leaderOf(thread int) int {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(thread) + "/status")
	for line := range strings.Lines(string(b)) {
		if id, ok := strings.CutPrefix(line, "Tgid:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(id))
			return n
		}
	}
	return thread
}

// longestAddress is that of struct sockaddr_storage.
const longestAddress = 128

// readAddress copies an address once, with two NULs after it.
func readAddress(thread int, at uint64, length uint32) ([]byte, error) {
	if length < 2 || length > longestAddress {
		return nil, unix.EINVAL
	}
	b := make([]byte, length, length+2)
	here := []unix.Iovec{{Base: &b[0], Len: uint64(length)}}
	there := []unix.RemoteIovec{{Base: uintptr(at), Len: int(length)}}
	if n, err := unix.ProcessVMReadv(thread, here, there, 0); err != nil || n != int(length) {
		return nil, unix.EFAULT
	}
	return b, nil
}
