package helper

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/fileops"
)

// init runs a helper or a worker if the arguments say so, and then does not return. It exits with syscall.Exit, since
// os.Exit runs hooks that may block or write to closed files.
func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case Marker:
		become(ControlFD, run)
	case fileops.Marker:
		become(fileops.ListenerFD, fileops.Serve)
	}
}

// become runs the main function of a helper or a worker, and exits. fd must be the daemon's socket.
func become(fd int, main func() int) {
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
		fmt.Fprintln(os.Stderr, "toold: "+os.Args[1]+" is for toold itself; run toold without it")
		syscall.Exit(125)
	}
	syscall.Exit(main())
}

// run is the main function of a helper.
func run() int {
	runtime.LockOSThread()
	clean()
	t := newStarter()
	// Ends the process.
	go func() { syscall.Exit(supervise(t)) }()
	t.serve()
	return 0
}

// supervise runs the calls.
func supervise(t *starter) int {
	hush(true)
	deafen := aside(setSignals)
	spec, handed, files, err := receiveSpec()
	if err != nil {
		return 125 // the parent is not a daemon, or has ended
	}
	site, err := settle(&spec, t)
	if err != nil {
		send(failure(err))
		return 125
	}
	if len(spec.Overlays) > 0 {
		return serveOverlays(spec.Overlays)
	}
	for {
		h := &supervisor{site: site, spec: spec, alone: make(chan struct{}), over: make(chan struct{})}
		if err := h.begin(handed, files, deafen); err != nil {
			send(failure(err))
			return 125
		}
		if spec.Probe {
			return 0
		}
		obeyed := aside(h.obey) // exits the process at the end of the call, unless it runs another one
		h.reap()
		obeyed()
		h.rest()
		if spec, handed, files, err = receiveSpec(); err != nil {
			return 0 // the daemon has no further call for it
		}
	}
}

// hush keeps the messages of Go's runtime, when it ends the helper, from blocking: no one reads a terminal before its
// command runs.
func hush(on bool) { _ = unix.SetNonblock(2, on) }

func (h *supervisor) begin(handed []int, files []uintptr, deafen func()) error {
	if err := h.site.sendListeners(); err != nil {
		return err
	}
	if h.spec.External || h.spec.Again {
		var err error
		if handed, err = takeStreams(&h.spec, handed); err != nil {
			return err
		}
	}
	h.handed = handed
	hush(true)
	r, err := h.site.confine(&h.spec, handed)
	defer r.close()
	deafen()
	if err == nil {
		h.abi = r.abi
		err = h.start(r, files)
	}
	if err == nil && h.warm == nil {
		send(Event{Kind: EventStarted, ABI: h.abi, Brokered: h.broker != nil})
		h.watch()
	}
	return err
}

func failure(err error) Event {
	e := Event{Kind: EventFailed, Text: err.Error()}
	if at, is := errors.AsType[*stageError](err); is {
		e.Stage, e.Text = at.stage, at.err.Error()
	}
	if no, is := errors.AsType[syscall.Errno](err); is {
		e.Errno = int(no)
	}
	return e
}

// supervisor is the parent of the shell.
type supervisor struct {
	site    *site
	spec    Spec
	abi     int
	broker  *broker // judges connections to local sockets; nil = there are none
	shell   int
	input   inputFiles     // set by start
	warm    *warmShell     // used by obey once the shell has its script
	present []string       // covered paths to look at before the warm shell runs a script; the daemon sees which others appear
	alone   chan struct{}  // closed when the call has no processes
	over    chan struct{}  // closed to end tasks
	tasks   sync.WaitGroup // goroutines that watch the call
	handed  []int          // descriptors to keep until the call has ended
	shared  sharedMemory   // of the machine, since the call began
	joined  bool           // the call's network was shared with other calls
	lenders []int          // for the broker once it starts

	inherits inherited // set before an unconfined shell starts

	full sync.Once // reports that the call reached its process limit

	mu     sync.Mutex
	reaped bool // the shell's pid may be reused
}

// start forks the shell and gives it the terminal.
func (h *supervisor) start(r *restrictions, extra []uintptr) error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return stage("open /dev/null", err)
	}
	defer unix.Close(null)
	if err := h.prepareUnconfined(); err != nil {
		return err
	}
	if h.spec.Room > 0 {
		if h.warm, err = h.spec.prepareWarm(); err != nil {
			return stage("prepare a shell without a script", err)
		}
		extra = []uintptr{uintptr(h.warm.read)}
	}
	h.site.threads()
	hush(false)
	if err := limitNumbers(&h.spec, null); err != nil {
		return err
	}
	if h.spec.restricted() && !h.site.starter.restricted {
		if err := h.site.starter.restrict(&h.spec); err != nil { // late: all threads exist by now
			return err
		}
	}
	if h.spec.Reserve {
		if extra, err = h.awaitGo(extra); err != nil {
			return stage("receive the start order", err)
		}
	}
	h.shared.least = sharedNow()
	if !h.spec.restricted() {
		h.inherits = inheritedNow()
	}
	if err := h.startShell(r, extra); err != nil || h.spec.Probe {
		return err
	}
	h.noteInput()
	h.letGo(null, 1, 2)
	if !h.spec.Terminal {
		h.letGo(null, 0)
		return nil
	}
	h.handOver()
	return nil
}

// handOver makes the shell's group the foreground group of the terminal, and continues the shell if it was stopped
// for using the terminal before. An error means that the shell has left its group or ended.
func (h *supervisor) handOver() {
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, h.shell)
	if by := h.stoppedBy(); by == 0 || by == unix.SIGTTIN || by == unix.SIGTTOU {
		_ = unix.Kill(-h.shell, unix.SIGCONT)
	}
}

func (h *supervisor) stoppedBy() unix.Signal {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, h.shell, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return 0
	}
	// The status follows three ints, padded to pointer size, and two more.
	const status = 2*4 + (3*4+unsafe.Sizeof(uintptr(0))-1)/unsafe.Sizeof(uintptr(0))*unsafe.Sizeof(uintptr(0))
	return unix.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(&info), status)))
}

// prepareUnconfined replaces the missing PID namespace: orphans are reparented to the helper.
func (h *supervisor) prepareUnconfined() error {
	if !h.spec.apart() {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return stage("become subreaper", err)
		}
	}
	// After the last use of this process's /proc entries; no process inside needs to inspect it.
	return stage("hide the helper", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

// letGo replaces descriptors by null, so that streams end with the call.
func (h *supervisor) letGo(null int, fds ...int) {
	for _, fd := range fds {
		_ = unix.Dup3(null, fd, 0)
	}
}

// reap reaps every child, and reports the end of the shell and of the last one. The terminal stays open until the
// shell has ended, so that its output to /dev/tty arrives even if it closed all other streams.
func (h *supervisor) reap() {
	sent := false
	for {
		// Without reaping: until a signal is sent, the pid must still refer to a child.
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		status, ended, alone := h.collect()
		if ended {
			h.releaseTerminal()
			if !alone {
				h.noteFull(Processes(), 1) // a shell that cannot fork often ends at once
			}
			send(Event{Kind: EventExited, Status: status, Alone: alone})
			sent = alone
		}
		if alone {
			if !sent {
				send(Event{Kind: EventAlone})
			}
			close(h.alone) // then the helper may end
			return
		}
	}
}

func (h *supervisor) collect() (status int, ended, alone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return status, ended, true // ECHILD: none left
		case pid == 0:
			return status, ended, false
		case pid == h.shell:
			h.reaped = true
			status, ended = int(ws), true
		}
	}
}

func (h *supervisor) releaseTerminal() {
	if !h.spec.Terminal {
		return
	}
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		h.letGo(null, 0)
		unix.Close(null)
	}
}

// isUntouched reports whether the call could change none of the helper's threads: none was created since the filter
// was installed.
func (h *supervisor) isUntouched() bool {
	count, err := threadCount()
	return err == nil && count == h.site.starter.threads
}

func (h *supervisor) leaveTerminal() error {
	if !h.spec.Terminal {
		return nil
	}
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENXIO) {
		return nil // it was hung up
	}
	if err != nil {
		return err
	}
	defer unix.Close(tty)
	return unix.IoctlSetInt(tty, unix.TIOCNOTTY, 0)
}

// obey carries out the daemon's orders. When the daemon has ended, it kills everything.
func (h *supervisor) obey() {
	if h.warm != nil {
		h.mustWait()
	}
	buf := make([]byte, 256+h.spec.Room)
	for {
		order, fds, err := receiveOrder(buf)
		if err != nil {
			h.end(137)
		}
		switch order.Kind {
		case OrderSetScript:
			h.setScript(order.Script)
		case OrderGo:
			h.lend(fds)
			h.release()
		case OrderLend:
			h.joined = true
			for _, fd := range fds {
				// Ends with the other helper.
				go h.spec.serveLoopback(fd)
			}
		case OrderSignal, OrderSignalAll, OrderSignalOne:
			h.signal(order)
		case OrderWake:
			h.wake()
		case OrderWaiting:
			send(h.waiting())
		case OrderKill:
			h.kill()
		case OrderList:
			send(h.list(EventMembers))
		case OrderEnd:
			send(h.list(EventLeft))
			h.clear()
			if !h.spec.Again {
				syscall.Exit(0)
			}
			return
		}
	}
}

// end kills the remaining processes and exits. With a PID namespace the kernel kills them, and the daemon's wait
// returns only when all have ended.
func (h *supervisor) end(code int) {
	if !h.spec.apart() {
		h.clear()
	}
	syscall.Exit(code)
}

func (h *supervisor) lend(lenders []int) {
	h.joined = h.joined || len(lenders) > 0
	h.lenders = lenders
	h.broker.lend(lenders)
}

func (h *supervisor) clear() {
	for !h.isAlone(0) {
		h.kill()
		h.isAlone(10 * time.Millisecond) // then again, for processes created meanwhile
	}
}
