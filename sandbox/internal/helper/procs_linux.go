package helper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Proc is a row of the process table, from /proc/PID/stat (proc_pid_stat(5)).
type Proc struct {
	PID, Parent, Group, Session int
	Threads                     int
	State                       byte
	Start                       uint64 // clock ticks since boot; identifies a process together with PID
	Name                        string
}

// Runnable reports whether the process runs or waits for a disk.
func (p Proc) Runnable() bool { return p.State == 'R' || p.State == 'D' }

// Busy reports whether a thread of the process runs or waits for a disk. State is that of the main thread, which
// often waits for the others.
func (p Proc) Busy() bool {
	if p.Runnable() || p.Threads < 2 {
		return p.Runnable()
	}
	for _, dir := range p.threads() {
		b, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue // it has ended
		}
		if one, err := parseStat(p.PID, string(b)); err == nil && one.Runnable() {
			return true
		}
	}
	return false
}

// Ended reports whether only the exit status of the process remains. If only the main thread has ended, the state is
// also 'Z', but there are other threads.
func (p Proc) Ended() bool { return p.State == 'Z' && p.Threads < 2 || p.State == 'X' }

// threads returns the directory of each thread in /proc, except for a main thread that has ended.
func (p Proc) threads() (dirs []string) {
	pid := strconv.Itoa(p.PID)
	dir := "/proc/" + pid + "/task/"
	list, _ := os.ReadDir(dir)
	for _, t := range list {
		if p.State != 'Z' || t.Name() != pid {
			dirs = append(dirs, dir+t.Name())
		}
	}
	return dirs
}

// read reads a file in /proc about the memory of the process. A main thread that has ended does not show it.
func (p Proc) read(name string) (b []byte, err error) {
	if p.State != 'Z' {
		return os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/" + name)
	}
	for _, dir := range p.threads() {
		if b, err = os.ReadFile(dir + "/" + name); err == nil {
			break
		}
	}
	return b, err
}

// Process returns the row of one process.
func Process(pid int) (Proc, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Proc{}, err
	}
	return parseStat(pid, string(b))
}

var errStat = errors.New("unexpected form of /proc/PID/stat")

func parseStat(pid int, s string) (Proc, error) {
	open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')') // the name may contain both
	if open < 0 || end < open {
		return Proc{}, errStat
	}
	f := strings.Fields(s[end+1:]) // f[0] is field 3 of the manual page
	if len(f) < 20 || len(f[0]) != 1 {
		return Proc{}, errStat
	}
	parent, err1 := strconv.Atoi(f[1])
	group, err2 := strconv.Atoi(f[2])
	session, err3 := strconv.Atoi(f[3])
	threads, err4 := strconv.Atoi(f[17])
	start, err5 := strconv.ParseUint(f[19], 10, 64)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return Proc{}, errStat
	}
	return Proc{pid, parent, group, session, threads, f[0][0], start, s[open+1 : end]}, nil
}

// Processes returns the whole table in /proc. It skips processes that end meanwhile.
func Processes() []Proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []Proc
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := Process(pid); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// descendants returns the living processes below pid, without pid itself. No process can leave this set if pid is a
// child subreaper.
func descendants(all []Proc, pid int) []Proc {
	children := map[int][]Proc{}
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var found []Proc
	for next := children[pid]; len(next) > 0; next = next[1:] {
		next = append(next, children[next[0].PID]...)
		if !next[0].Ended() {
			found = append(found, next[0])
		}
	}
	return found
}

// Orphans finds what a killed helper of an unconfined call left: the processes of its session, and those with the
// call's cookie in their initial environment.
func Orphans(helper int, cookie string) []Proc {
	var found []Proc
	for _, p := range Processes() {
		if p.Ended() || p.PID == helper || p.PID == os.Getpid() {
			continue
		}
		if p.Session == helper || cookie != "" && carries(p, cookie) {
			found = append(found, p)
		}
	}
	return found
}

func carries(p Proc, variable string) bool {
	b, err := p.read("environ")
	return err == nil && bytes.Contains(append([]byte{0}, b...), []byte("\x00"+variable+"\x00"))
}

// Signal sends sig to the process that p describes, never to another process with the same pid.
func (p Proc) Signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	now, err := Process(p.PID)
	if err != nil {
		return err
	}
	if now.Start != p.Start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// Gone reports whether the process that p describes has ended, and so has closed its files.
func (p Proc) Gone() bool {
	now, err := Process(p.PID)
	return err != nil || now.Start != p.Start || now.Ended()
}

// Sweep stops what find returns until find returns no new process, then kills all of them and returns them. Without
// stopping them first, a program that forks faster than the table is read would always have a child that the kills
// miss.
func Sweep(find func() []Proc) (killed []Proc) {
	type name struct {
		pid   int
		start uint64
	}
	stopped := map[name]Proc{}
	for fresh := true; fresh; {
		fresh = false
		for _, p := range find() {
			if _, known := stopped[name{p.PID, p.Start}]; !known {
				stopped[name{p.PID, p.Start}] = p
				fresh = true
				_ = p.Signal(unix.SIGSTOP) // it may have ended
			}
		}
	}
	for _, p := range stopped {
		_ = p.Signal(unix.SIGKILL)
		killed = append(killed, p)
	}
	return killed
}

// describe returns the command line of a process, or its name in brackets, in one line.
func describe(p Proc) string {
	b, err := p.read("cmdline")
	s := oneLine(strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " ")))
	if err != nil || s == "" {
		return "[" + oneLine(p.Name) + "]"
	}
	return s[:min(len(s), 256)]
}

// oneLine escapes control characters, which a process may have in its command line.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
