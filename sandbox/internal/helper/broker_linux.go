//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// broker performs every connect(2) of a call. A filter cannot check the address, which is in memory where another
// thread can change it after the check. So the kernel stops the system call and notifies the helper
// (seccomp_unotify(2)), which copies the descriptor and the address, decides on the copies, and connects. The kernel
// never continues the program's own system call.
//
// A call may connect to local sockets of its own processes, and to listed ones. A socket of the machine is recognised
// by its file, which the call cannot have created if the mount is read-only. In a directory that both can write, it
// is recognised by its listener: see listeners, and connection.finish for a shared network.
//
// The listener sees the helper as the connecting process (SO_PEERCRED), with the same user. While a connect waits,
// only fatal signals interrupt it.
type broker struct {
	fd     int        // seccomp notification descriptor of the helper
	over   int        // eventfd(2), written when the call has no processes
	failed bool       // it ended before the call
	shared bool       // the call is in the machine's PID namespace
	own    bool       // the call has a network of its own, including abstract sockets
	listed []fileID   // sockets of the machine to which the call may connect
	inside *listeners // used by serve; nil until then, or if sock_diag is unavailable
	asked  bool       // inside is initialised

	lenders atomic.Pointer[[]int] // sockets to helpers of other calls whose servers this one may reach; nil = none
	asking  sync.Mutex            // serialises requests to lenders

	refused refusals
	work    sync.WaitGroup // serve, and waiting connections
}

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

func newBroker(s *Spec, t *starter) *broker {
	b := &broker{fd: t.listener, over: t.over, shared: s.Shared, own: s.Loopback}
	for _, path := range s.Sockets {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			b.listed = append(b.listed, identify(&st))
		}
	}
	return b
}

// canBroker reports whether the helper can recognise the call's own sockets and inspect its processes. Yama lets an
// ancestor do that, but no process in its stricter modes.
func canBroker(s *Spec) bool {
	if !s.Namespaces || s.Shared && !s.Loopback {
		return false
	}
	mode, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return err != nil || strings.TrimSpace(string(mode)) < "2"
}

// wait ends the broker, whose call has no processes. It reports whether later calls can have one.
func (b *broker) wait() bool {
	if b == nil {
		return true
	}
	_, err := unix.Write(b.over, []byte{0, 0, 0, 0, 0, 0, 0, 1})
	b.work.Wait()
	return err == nil && !b.failed
}

// serve answers, on a thread of its own, until wait. If it fails, every connect does.
func (b *broker) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { b.inside.close() }()
	for b.isAsked() {
		var n notification
		switch e := b.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); e {
		case 0:
			b.answer(&n)
		case unix.ENOENT, unix.EINTR: // the process has ended
		default:
			b.fail()
			return
		}
	}
}

func (b *broker) fail() {
	b.failed = true
	unix.Close(b.fd)
}

// isAsked waits for a notification. It returns false after wait or a failure.
func (b *broker) isAsked() bool {
	fds := []unix.PollFd{{Fd: int32(b.over), Events: unix.POLLIN}, {Fd: int32(b.fd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil && fds[0].Revents != 0:
			var count [8]byte
			_, _ = unix.Read(b.over, count[:]) // for the next broker
			return false
		case err == nil && fds[1].Revents&unix.POLLIN != 0:
			return true
		}
		b.fail()
		return false
	}
}

func (b *broker) control(request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(b.fd), request, uintptr(argument))
	return e
}

// answer connects or refuses. A connection that would block continues in a goroutine.
func (b *broker) answer(n *notification) {
	c, err := b.accept(n)
	if err == nil && b.borrows(&c) {
		// Ends with the connection, or when the waiting process has ended.
		b.work.Go(func() { b.borrow(*n, c) })
		return
	}
	if err == nil {
		var waits bool
		if waits, err = c.try(); waits {
			// Ends with the connection, or when the waiting process has ended.
			b.work.Go(func() { b.retry(n.id, c) })
			return
		}
	}
	b.end(n.id, &c, err)
}

// end closes a connection that succeeded or failed, and answers the process.
func (b *broker) end(id uint64, c *connection, err error) {
	b.refused.note(c, err)
	c.close()
	b.reply(id, err)
}

func (b *broker) reply(id uint64, err error) {
	r := response{id: id, errno: -int32(errnoOf(err))}
	// ENOENT means that the process was killed.
	for b.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) == unix.EINTR {
	}
}

// waits reports whether the process still waits. Until then its pid is not reused.
func (b *broker) waits(id uint64) bool {
	return b.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// accept copies the descriptor and address of a request, and decides. The caller closes c.
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
		// Not a local socket, or an address that no local socket accepts.
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
	// What was read belonged to this thread, not to one that reused its id.
	if !b.waits(n.id) {
		return c, unix.ESRCH
	}
	return c, b.judge(&c)
}

// judge decides by the file of a local socket.
func (b *broker) judge(c *connection) error {
	var st unix.Stat_t
	if err := unix.Fstat(c.file, &st); err != nil {
		return err
	}
	if slices.Contains(b.listed, identify(&st)) {
		return nil
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

// hear decides by the listener, in directories that the call can write.
func (b *broker) hear(c *connection) error {
	if b.own && !b.asked {
		b.inside, b.asked = newListeners(), true
	}
	if b.inside == nil && b.shared {
		return errRefused
	}
	if b.inside == nil {
		return nil // finish decides
	}
	if found, err := b.inside.has(c.file); found || err != nil {
		return err
	}
	// Another listener, or none. Programs must be able to distinguish these.
	return c.knock()
}

// takeDescriptor copies a descriptor of a thread. Before Linux 6.9, only descriptors of whole processes can be
// copied; those of a thread that has unshared its table are not found.
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
		err = unix.EACCES // the process is not dumpable
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

// longestAddress is the size of struct sockaddr_storage.
const longestAddress = 128

// readAddress copies an address once and appends two NULs.
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
