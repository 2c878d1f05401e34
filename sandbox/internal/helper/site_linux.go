package helper

import (
	"os"

	"golang.org/x/sys/unix"
)

// site is what a helper has for all its calls.
type site struct {
	base    *base  // nil: it holds one call
	bound   bool   // process numbers are limited, and not processes
	threads func() // waits for startThreads
	calls   int    // that it has held
	traces  traces // as they were before the first
}

// mostCalls is how many calls a helper holds. Each takes a thread with it, and all threads
// are started before the first call (see restrictOthers).
const mostCalls = 24

// settle does once what no call changes: the user, limits of the namespaces, the network.
func settle(s *Spec) (*site, error) {
	t := &site{threads: func() {}}
	// When memory runs out a call goes before the daemon. Where the file cannot
	// be written the machine's own order holds.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
	own := s.Namespaces && !s.Given
	if own {
		if err := nameUser(s); err != nil {
			return nil, stage("clone", err) // of which it is a part
		}
	}
	if len(s.Overlays) > 0 {
		return t, nil
	}
	t.bound = boundNumbers(s) // before the view, in which the kernel's settings cannot be written
	boundUser(s)
	if s.Again || s.Processes > 0 && (s.Namespaces || s.Counted) {
		t.threads = aside(func() { startThreads(s.Again) })
	}
	if own && s.Loopback {
		if err := s.openNetwork(); err != nil {
			return nil, err
		}
	}
	if !own {
		return t, nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, stage("make mounts private", err)
	}
	if !s.Again {
		return t, nil
	}
	if err := keepCapabilities(); err != nil {
		return nil, stage("drop capabilities", err)
	}
	var err error
	if t.traces, err = readTraces(); err != nil {
		return nil, stage("read what a call may change", err)
	}
	if base, err := newBase(); err == nil { // else it holds one call: pivot_root(2) is refused in an initramfs
		t.base = base
	}
	return t, nil
}

func (s *Spec) openNetwork() error {
	if err := raiseLoopback(); err != nil {
		return stage("bring up the loopback", err)
	}
	if len(s.Ports) == 0 {
		return nil
	}
	return openDoors(s.Ports)
}

// enter gives a call a view of its own.
func (t *site) enter(s *Spec, handed []int) error {
	if t.base != nil {
		return t.base.enter(s, handed)
	}
	_, err := buildView(s, handed, takeTerminal("", s.Terminal))
	return err
}
