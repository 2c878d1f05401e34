package helper

import (
	"os"

	"golang.org/x/sys/unix"
)

// site is the state that the calls of a helper share.
type site struct {
	base    *base  // nil = it makes no view, or runs one call
	bound   bool   // pids are limited instead of processes
	threads func() // waits for startThreads
	calls   int
	traces  *traces // nil = it runs one call
	starter *starter

	listeners []int // see openProxyListeners
}

// mostCalls is how many calls a helper runs.
const mostCalls = 256

// settle sets up, once, what no call changes: the user, the limits of the namespaces, the network.
func settle(s *Spec, starts *starter) (*site, error) {
	t := &site{starter: starts, threads: func() {}}
	// When memory runs out, the kernel should kill a call before the daemon. If the write fails, the machine's own
	// order applies.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	own := s.Namespaces && !s.External
	if own {
		if err := nameUser(s); err != nil {
			return nil, stage("clone", err) // part of that stage
		}
	}
	if len(s.Overlays) > 0 {
		return t, nil
	}
	t.bound = boundNumbers(s) // before the view, in which sysctls are read-only
	boundUser(s)
	isLimited := s.Processes > 0 && (s.Namespaces || s.Counted)
	if s.Again || isLimited {
		t.threads = aside(startThreads)
	}
	var err error
	switch {
	case own:
		err = t.settleNamespaces(s)
	case s.Again:
		t.traces, _ = openTraces(s) // without them it runs one call
	}
	return t, err
}

func (t *site) settleNamespaces(s *Spec) (err error) {
	if t.starter.run(func() { err = dropForGood() }); err != nil {
		return stage("drop capabilities", err)
	}
	if s.Loopback {
		if err := t.openNetwork(s); err != nil {
			return err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return stage("make mounts private", err)
	}
	if !s.Again {
		return nil
	}
	return t.prepareAgain(s)
}

func (t *site) prepareAgain(s *Spec) error {
	if err := keepCapabilities(); err != nil {
		return stage("drop capabilities", err)
	}
	// Without one of these it runs one call; an initramfs refuses pivot_root(2).
	found, err := openTraces(s)
	if err != nil {
		return nil
	}
	if base, err := newBase(); err == nil {
		t.base, t.traces = base, found
	}
	return nil
}

func (t *site) openNetwork(s *Spec) (err error) {
	if err := raiseLoopback(); err != nil {
		return stage("bring up the loopback", err)
	}
	if len(s.Ports) > 0 {
		t.listeners, err = openProxyListeners(s.Ports)
	}
	return err
}

func (t *site) enter(s *Spec, handed []int) error {
	if t.base != nil {
		return t.base.enter(s, handed)
	}
	_, err := buildView(s, handed, takeTerminal("", s.Terminal))
	return err
}
