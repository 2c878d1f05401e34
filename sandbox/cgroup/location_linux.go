package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The controllers in use.
const (
	pids   = "pids"
	memory = "memory"
)

// Files of a group.
const (
	processes = "cgroup.procs"
	threads   = "tasks" // version 1; accepts single threads
	switches  = "cgroup.subtree_control"
)

// location is the group of this process in one hierarchy.
type location struct {
	dir     string
	unified bool // version 2; otherwise version 1
}

// find lists the locations of a process, version 2 first (proc_pid_mountinfo(5), cgroups(7)).
func find(mountinfo, own string) []location {
	var all []location
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		mount, kind := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(kind) < 3 || strings.Contains(mount[4], `\`) {
			continue
		}
		var path string
		var ok bool
		unified := kind[0] == "cgroup2"
		switch {
		case unified:
			path, ok = ownPath(own, "")
		case kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), pids):
			path, ok = ownPath(own, pids)
		}
		rest, below := strings.CutPrefix(path, strings.TrimSuffix(mount[3], "/"))
		below = below && (rest == "" || rest[0] == '/')
		if !ok || !below || strings.Contains(path+"/", "/../") {
			continue // the mount shows another part
		}
		p := location{filepath.Join(mount[4], rest), unified}
		if unified {
			all = slices.Insert(all, 0, p)
		} else {
			all = append(all, p)
		}
	}
	return all
}

// ownPath returns the path of the process in the hierarchy of a controller; "" selects version 2.
func ownPath(own, controller string) (string, bool) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) && strings.HasPrefix(f[2], "/") {
			return f[2], true
		}
	}
	return "", false
}

func (p location) controllers() []string {
	if !p.unified {
		return []string{pids}
	}
	has := words(p.dir, "cgroup.controllers")
	return slices.DeleteFunc([]string{pids, memory}, func(c string) bool { return !slices.Contains(has, c) })
}

func words(dir, file string) []string {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

func write(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
