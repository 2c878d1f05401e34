package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Group contains the processes of one call. A nil Group starts them in the group of the caller.
type Group struct {
	root *Root
	dir  string
}

// New creates a group with limits. A nil Root returns a nil Group. The caller must call End.
func (r *Root) New(l Limits) (*Group, error) {
	if r == nil {
		return nil, nil
	}
	g := &Group{root: r, dir: filepath.Join(r.dir, strconv.FormatInt(r.last.Add(1), 10))}
	if err := os.Mkdir(g.dir, 0o700); err != nil {
		return nil, err
	}
	if err := g.limit(l); err != nil {
		g.End()
		return nil, err
	}
	return g, nil
}

func (g *Group) limit(l Limits) error {
	if l.Processes > 0 {
		if err := write(g.dir, "pids.max", strconv.FormatUint(l.Processes, 10)); err != nil {
			return err
		}
	}
	if l.MemoryBytes == 0 || !g.root.memory {
		return nil
	}
	if err := write(g.dir, "memory.max", strconv.FormatUint(l.MemoryBytes, 10)); err != nil {
		return err
	}
	// This file is missing on a kernel without swap.
	if err := write(g.dir, "memory.swap.max", "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return write(g.dir, "memory.oom.group", "1")
}

// Start starts a command in the group, which contains it from its first instruction.
func (g *Group) Start(cmd *exec.Cmd) error {
	switch {
	case g == nil:
		return cmd.Start()
	case g.root.unified:
		return g.startInto(cmd)
	}
	return g.startFrom(cmd)
}

// startInto makes the kernel create the process in the group (CLONE_INTO_CGROUP, clone(2)).
func (g *Group) startInto(cmd *exec.Cmd) error {
	dir, err := os.Open(g.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return cmd.Start()
}

// startFrom starts the command from a thread that joins the group, as version 1 allows: a child inherits the group of
// its thread. Moving the calling thread is immediate; moving another process takes milliseconds.
func (g *Group) startFrom(cmd *exec.Cmd) error {
	started := make(chan error)
	// Ends when the command has started.
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // the main thread determines the process's reported group
			err := g.startFrom(cmd) // on another thread, since this one is locked
			runtime.UnlockOSThread()
			started <- err
			return
		}
		err := write(g.dir, threads, "0")
		if err == nil {
			err = cmd.Start()
			if write(g.root.location.dir, threads, "0") != nil {
				started <- err
				return // without an unlock, the thread ends with the goroutine and nothing else runs in the group
			}
		}
		runtime.UnlockOSThread()
		started <- err
	}()
	return <-started
}

// Met returns which limits the group has reached so far.
func (g *Group) Met() Met {
	if g == nil {
		return Met{}
	}
	return Met{
		Processes: g.count("pids.events", "max") > 0,
		Memory:    g.root.memory && g.count("memory.events", "oom_kill") > 0,
	}
}

// Fresh reports whether another call may use the group: no limit was reached, and it is charged for little memory,
// such as page cache.
func (g *Group) Fresh() bool {
	if g == nil {
		return true
	}
	if g.Met() != (Met{}) {
		return false
	}
	if !g.root.memory {
		return true
	}
	const little = 64 << 20
	used, err := strconv.ParseUint(strings.Join(words(g.dir, "memory.current"), ""), 10, 64)
	return err == nil && used < little
}

func (g *Group) count(file, name string) int {
	w := words(g.dir, file)
	if i := slices.Index(w, name); i >= 0 && i+1 < len(w) {
		n, _ := strconv.Atoi(w[i+1])
		return n
	}
	return 0
}

// End kills every process of the group and its descendants, waits at most ten seconds for each of these groups, and
// removes them. An error means that some processes are stuck in the kernel; Root.Close or the next daemon removes the
// rest.
func (g *Group) End() error {
	if g == nil {
		return nil
	}
	return g.root.end(g.dir)
}

// end kills the processes of a group and its descendants, which an unconfined call can create, and removes the
// groups. It keeps the group of this process.
func (p location) end(dir string) error {
	err := os.Remove(dir)
	if !errors.Is(err, unix.EBUSY) {
		return err // usually nil: the last process has ended
	}
	all := below(dir)
	if slices.ContainsFunc(all, holdsUs) {
		return err
	}
	if !p.unified || write(dir, "cgroup.kill", "1") != nil { // Linux 5.14
		killEach(all)
	}
	for _, dir := range slices.Backward(all) {
		if err := rmdir(dir); err != nil {
			return fmt.Errorf("cannot remove the control group %s: %w", dir, err)
		}
	}
	return nil
}

// below returns a group and its descendants, parents first.
func below(dir string) (all []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil // the group is gone
	})
	return all
}

func holdsUs(dir string) bool {
	return slices.Contains(words(dir, processes), strconv.Itoa(os.Getpid()))
}

// rmdir retries, since a group remains busy for a moment after its last process ended.
func rmdir(dir string) error {
	for range 5000 {
		err := os.Remove(dir)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return unix.EBUSY
}

// killEach kills the processes of groups one by one, after it has forbidden new ones in the first.
func killEach(groups []string) {
	_ = write(groups[0], "pids.max", "0")
	for _, dir := range groups {
		for _, each := range members(dir) {
			_ = unix.PidfdSendSignal(each, unix.SIGKILL, nil, 0)
			unix.Close(each)
		}
	}
}

// members returns descriptors of the processes of a group. It lists the processes again after opening them: a pid
// that is still listed was not reused.
func members(dir string) (fds []int) {
	opened := map[string]int{}
	for _, number := range words(dir, processes) {
		pid, err := strconv.Atoi(number)
		if err != nil || pid <= 0 { // 0 is a process in an invisible namespace
			continue
		}
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			opened[number] = fd
		}
	}
	for _, number := range words(dir, processes) {
		if fd, ok := opened[number]; ok {
			fds = append(fds, fd)
			delete(opened, number)
		}
	}
	for _, fd := range opened {
		unix.Close(fd)
	}
	return fds
}
