package cgroup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Root is the parent of the groups of a daemon's calls. A nil Root creates none. It is safe for concurrent use,
// except that Close must be called after the last group has ended.
type Root struct {
	location
	dir      string   // of the root, named after the daemon
	lock     *os.File // open and locked dir
	memory   bool
	moved    bool // the daemon moved into home, its own group in dir
	switched bool // controllers of location were enabled
	last     atomic.Int64
}

const (
	rootPrefix = "toold-"
	home       = "daemon"
)

// Open creates and tests a root, and removes those of killed daemons. In version 2, a daemon that is alone in its
// group moves into a child of it; one that is not gets no root there. The caller must close the Root.
func Open() (*Root, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	why := errors.New("no hierarchy of control groups that counts processes is mounted")
	for i, p := range find(string(mounts), string(own)) {
		r, err := p.open()
		switch {
		case err == nil:
			return r, nil
		case i == 0:
			why = err
		default:
			why = fmt.Errorf("%w; %w", why, err)
		}
	}
	return nil, why
}

func (p location) open() (*Root, error) {
	if !slices.Contains(p.controllers(), pids) {
		return nil, fmt.Errorf("%s does not count processes", p.dir)
	}
	if err := unix.Access(p.dir, unix.W_OK); err != nil {
		return nil, fmt.Errorf("no control group can be made in %s: %w", p.dir, err)
	}
	p.clear()
	r, err := p.make()
	for range 2 {
		if err == nil {
			break
		}
		r, err = p.make() // another daemon may have removed it as stale
	}
	if err != nil {
		return nil, err
	}
	if err := r.switchOn(); err != nil {
		r.Close()
		return nil, err
	}
	if err := r.try(); err != nil {
		r.Close()
		return nil, fmt.Errorf("no process can be started in a control group below %s: %w", p.dir, err)
	}
	return r, nil
}

// Memory reports whether groups limit memory.
func (r *Root) Memory() bool { return r != nil && r.memory }

// Dir returns the directory in which groups are created; "" for nil.
func (r *Root) Dir() string {
	if r == nil {
		return ""
	}
	return r.location.dir
}

func (p location) make() (*Root, error) {
	r := &Root{location: p, dir: filepath.Join(p.dir, fmt.Sprintf("%s%d-%s", rootPrefix, os.Getpid(), rand.Text()))}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if r.lock, err = lock(r.dir); err == nil {
		_, err = os.Stat(r.dir) // it may have been removed before it was locked
	}
	if err != nil {
		r.lock.Close()
		_ = os.Remove(r.dir)
		return nil, fmt.Errorf("cannot keep %s: %w", r.dir, err)
	}
	return r, nil
}

// lock locks a directory. It returns EWOULDBLOCK if another process has locked it.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// clear ends and removes the roots of dead daemons, whose locks are free.
func (p location) clear() {
	groups, _ := os.ReadDir(p.dir)
	for _, g := range groups {
		dir := filepath.Join(p.dir, g.Name())
		if !g.IsDir() || !strings.HasPrefix(g.Name(), rootPrefix) {
			continue
		}
		held, err := lock(dir)
		if err != nil {
			continue // its daemon lives, or belongs to another user
		}
		_ = p.end(dir) // the next daemon tries again
		held.Close()
	}
}

func (r *Root) switchOn() error {
	if !r.unified {
		return nil
	}
	var order []string
	for _, c := range r.controllers() {
		order = append(order, "+"+c)
	}
	r.memory = slices.Contains(order, "+"+memory)
	if !r.passes(order) {
		if err := r.settle(strings.Join(order, " ")); err != nil {
			return err
		}
	}
	return write(r.dir, switches, strings.Join(order, " "))
}

func (r *Root) passes(order []string) bool {
	on := words(r.location.dir, switches)
	return !slices.ContainsFunc(order, func(o string) bool { return !slices.Contains(on, o[1:]) })
}

// settle enables controllers at the location. If necessary, it moves the daemon out of that group first.
func (r *Root) settle(order string) error {
	err := write(r.location.dir, switches, order)
	if errors.Is(err, unix.EBUSY) && slices.Equal(words(r.location.dir, processes), []string{strconv.Itoa(os.Getpid())}) {
		below := filepath.Join(r.dir, home)
		if err = os.Mkdir(below, 0o700); err == nil {
			err = write(below, processes, "0")
			r.moved = err == nil
		}
		if err == nil {
			err = write(r.location.dir, switches, order)
		}
	}
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%s has other processes than toold: start it in a control group of its own, with systemd-run --scope -p Delegate=yes (of a user: --user --scope)", r.location.dir)
	}
	r.switched = err == nil
	return err
}

// try starts a program that does not exist in a group, and expects the failure to happen inside the group.
func (r *Root) try() error {
	g, err := r.New(Limits{})
	if err != nil {
		return err
	}
	defer g.End()
	err = g.Start(&exec.Cmd{Path: filepath.Join(r.dir, "no-such-program")})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close removes the root. The daemon returns to its original group.
func (r *Root) Close() {
	if r == nil {
		return
	}
	if r.switched {
		off := strings.ReplaceAll("+"+strings.Join(r.controllers(), " +"), "+", "-")
		_ = write(r.dir, switches, off)
		_ = write(r.location.dir, switches, off)
	}
	if r.moved {
		_ = write(r.location.dir, processes, "0")
	}
	_ = r.end(r.dir) // the next daemon tries again
	r.lock.Close()
}
