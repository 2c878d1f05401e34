//go:build linux && (amd64 || arm64)

// Package plan starts programs in processes that first restrict themselves.
//
// Between fork and exec, a process of a Go program can run no Go code: it has only one of the threads that the runtime
// needs. So a plan lists the system calls of the new process beforehand, and a loop in assembly makes them. The loop
// keeps its state in registers and uses no stack, since the process shares the memory of its parent until it executes
// the program (vfork(2)), which costs less than a copy. A restriction that is made in the new process leaves the
// threads of the parent as they are.
package plan

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Plan is a list of system calls, of which the last one does not return. The zero value is empty.
type Plan struct {
	calls  []call
	names  []string
	memory []unsafe.Pointer // to which arguments point
}

// call is a system call. The assembly knows its layout.
type call struct {
	number    uintptr
	arguments [6]uintptr
	result    *uint64 // where its result is stored; nil = nowhere
}

// run is what a new process is to do, and what became of it. The assembly knows its layout.
type run struct {
	first  *call
	failed *call   // nil if each call succeeded
	errno  uintptr // of the failed one
}

// Error reports the system call that failed.
type Error struct {
	Name  string // from Do
	Errno syscall.Errno
}

func (e *Error) Error() string { return e.Name + ": " + e.Errno.Error() }

// Do adds a system call. The name appears in the error if it fails.
func (p *Plan) Do(name string, number uintptr, arguments ...uintptr) {
	c := call{number: number}
	copy(c.arguments[:], arguments)
	p.calls, p.names = append(p.calls, c), append(p.names, name)
}

// Store makes the result of the latest call an element of a buffer of Bytes, as 64 bits.
func (p *Plan) Store(to []byte) {
	p.calls[len(p.calls)-1].result = (*uint64)(unsafe.Pointer(&to[0]))
}

// Address returns the address of a variable on the heap, which exists as long as the plan.
func (p *Plan) Address(of unsafe.Pointer) uintptr {
	p.memory = append(p.memory, of)
	return uintptr(of)
}

// Bytes returns a buffer for arguments, aligned for every type, and its address.
func (p *Plan) Bytes(n int) ([]byte, uintptr) {
	words := unsafe.Pointer(unsafe.SliceData(make([]uint64, n/8+1)))
	return unsafe.Slice((*byte)(words), n), p.Address(words)
}

// String returns the address of a copy of s, which a NUL ends.
func (p *Plan) String(s string) uintptr {
	b, at := p.Bytes(len(s) + 1)
	copy(b, s)
	return at
}

// Strings returns the address of a list of strings, as execve(2) expects it.
func (p *Plan) Strings(list []string) uintptr {
	const word = int(unsafe.Sizeof(uintptr(0)))
	b, at := p.Bytes((len(list) + 1) * word)
	pointers := unsafe.Slice((*uintptr)(unsafe.Pointer(&b[0])), len(list)+1)
	for i, s := range list {
		pointers[i] = p.String(s)
	}
	return at
}

// Signals adds calls after which the process has the default action for every signal and blocks none.
func (p *Plan) Signals() {
	const size = 8                 // of the kernel's sigset_t
	_, byDefault := p.Bytes(4 * 8) // struct sigaction: SIG_DFL, no flags, no mask
	for sig := uintptr(1); sig <= 64; sig++ {
		if s := unix.Signal(sig); s != unix.SIGKILL && s != unix.SIGSTOP {
			p.Do("reset the signals", unix.SYS_RT_SIGACTION, sig, byDefault, 0, size)
		}
	}
	_, none := p.Bytes(size)
	p.Do("reset the signals", unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, none, 0, size)
}

// Start runs the plan in a child of the calling thread, and returns when the last call has executed a program or ended
// the process. If a call fails, the child ends, and the error is an *Error. The plan must call Signals: until then the
// child blocks all, since a handler would run Go code in it.
func (p *Plan) Start() (pid int, err error) {
	if len(p.calls) == 0 {
		return 0, errors.New("plan: it has no calls")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return 0, fmt.Errorf("plan: block signals: %w", err)
	}
	r := &run{first: &p.calls[0]}
	n := start(r)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) // cannot fail
	runtime.KeepAlive(p)
	if n < 0 {
		return 0, &Error{"clone", syscall.Errno(-n)}
	}
	if r.failed == nil {
		return n, nil
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		_, err = unix.Wait4(n, nil, 0, nil)
	}
	at := (uintptr(unsafe.Pointer(r.failed)) - uintptr(unsafe.Pointer(r.first))) / unsafe.Sizeof(call{})
	return 0, &Error{p.names[at], syscall.Errno(r.errno)}
}

// start makes a process, which makes the calls of r in turn. It returns its pid, or a negative errno, when the process
// has executed a program or ended. The caller must block all signals.
func start(r *run) int
