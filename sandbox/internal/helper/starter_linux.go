package helper

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// starter is the main thread of a helper, which starts the processes of the calls, and does nothing else. What it is
// restricted by, they inherit; the other threads are not.
type starter struct {
	jobs chan func()
	done chan struct{}

	restricted bool   // restrict was called
	threads    uint32 // threadCount when the filters were installed
	listener   int    // of its filter, for the brokers of the calls; -1 = local sockets are refused
	over       int    // see broker
}

func newStarter() *starter {
	return &starter{jobs: make(chan func()), done: make(chan struct{}), listener: -1}
}

// serve runs jobs for ever. The caller must have locked its thread.
func (t *starter) serve() {
	for do := range t.jobs {
		do()
		t.done <- struct{}{}
	}
}

// run runs do on the thread of serve.
func (t *starter) run(do func()) {
	t.jobs <- do
	<-t.done
}

// startShell starts the shell, with the descriptors extra from 3 on, and closes them here. The shell leads a process
// group, but no session: the exit of its leader would hang up the terminal during the output of its children.
func (h *supervisor) startShell(r *restrictions, extra []uintptr) (err error) {
	switch {
	case h.spec.restricted():
		return h.startConfined(r, extra)
	case h.spec.Probe:
		return nil
	}
	attr := &syscall.ProcAttr{
		Env: h.spec.Env, Files: append([]uintptr{0, 1, 2}, extra...),
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}, // of the starter, and so of the helper
	}
	h.site.starter.run(func() { h.shell, err = syscall.ForkExec(h.spec.Argv[0], h.spec.Argv, attr) })
	if err != nil {
		return stage("start "+h.spec.Argv[0], err)
	}
	for _, fd := range extra {
		unix.Close(int(fd))
	}
	return nil
}
