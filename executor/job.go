package executor

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// job is the shell of a plain command and its descendants. It lacks a process in a session of its own whose ancestors
// all ended before it was seen.
type job struct {
	leader int

	mu     sync.Mutex
	reaped bool // the shell's pid may be reused
	reused bool // the pid, and so the session id, was reused
	over   bool
	seen   map[int]time.Time // start times of known members, whose parents may have ended
}

func startJob(shell *exec.Cmd) (*job, error) {
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := shell.Start(); err != nil {
		return nil, err
	}
	return &job{leader: shell.Process.Pid}, nil
}

// gone records that the shell was waited for, so that its pid must not be signalled any more.
func (j *job) gone() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reaped = true
}

type member struct {
	pid, parent int
	runs        bool // it runs or waits for a disk
	born        time.Time
	command     string
}

// bornWithin is the largest difference of two readings of one start time: ps computes it from the time of day, in
// seconds.
const bornWithin = 2 * time.Second

// known reports whether m was found before and is not another process with the same pid. The caller holds mu.
func (j *job) known(m member) bool {
	born, seen := j.seen[m.pid]
	return seen && m.born.Sub(born).Abs() <= bornWithin
}

// members returns the living processes of the job, without zombies.
func (j *job) members() []member {
	j.mu.Lock()
	reaped := j.reaped
	j.mu.Unlock()
	all := processes()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over {
		return nil
	}
	j.reused = j.reused || reaped && slices.ContainsFunc(all, func(m member) bool { return m.pid == j.leader })
	found := map[int]time.Time{}
	for grew := true; grew; {
		grew = false
		for _, m := range all {
			if _, is := found[m.pid]; !is && j.has(m, found) {
				found[m.pid], grew = m.born, true
			}
		}
	}
	mine := slices.DeleteFunc(all, func(m member) bool { return found[m.pid].IsZero() })
	j.seen, j.over = found, j.reaped && len(mine) == 0
	return mine
}

// has reports whether m belongs to the job, given the members found so far. The caller holds mu.
func (j *job) has(m member, found map[int]time.Time) bool {
	if _, child := found[m.parent]; child || j.known(m) {
		return true
	}
	session, err := unix.Getsid(m.pid)
	return !j.reused && err == nil && session == j.leader
}

func processes() []member {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ps := exec.CommandContext(ctx, "/bin/ps", "-A", "-o", "pid=,ppid=,stat=,lstart=,args=")
	ps.Env = []string{"LC_ALL=C", "TZ=UTC"}
	out, err := ps.Output()
	if err != nil {
		return nil
	}
	var all []member
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) < 9 || strings.HasPrefix(words[2], "Z") {
			continue
		}
		pid, err := strconv.Atoi(words[0])
		parent, err2 := strconv.Atoi(words[1])
		born, err3 := time.Parse("Jan 2 15:04:05 2006", strings.Join(words[4:8], " "))
		if errors.Join(err, err2, err3) == nil && pid != ps.Process.Pid {
			all = append(all, member{pid, parent, strings.ContainsAny(words[2][:1], "RDU"), born, strings.Join(words[8:], " ")})
		}
	}
	return all
}

func (j *job) alive() bool { return len(j.members()) > 0 }

func (j *job) runnable() bool {
	return slices.ContainsFunc(j.members(), func(m member) bool { return m.runs })
}

func (j *job) terminate() {
	for _, m := range j.members() {
		_ = syscall.Kill(m.pid, syscall.SIGTERM)
		_ = syscall.Kill(m.pid, syscall.SIGCONT) // a stopped process receives no other signal
	}
}

// kill kills all processes, including those that start during that.
func (j *job) kill() {
	j.signal("SIGKILL", false)
	for range 100 {
		all := j.members()
		if len(all) == 0 {
			return
		}
		for _, m := range all {
			_ = syscall.Kill(m.pid, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (j *job) end() []Process {
	var left []Process
	for _, m := range j.members() {
		left = append(left, Process{PID: m.pid, Command: m.command})
	}
	j.kill()
	return left
}

// signal sends a signal to the shell's process group, or to the shell alone.
func (j *job) signal(name string, toShell bool) {
	to := -j.leader
	if toShell {
		to = j.leader
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if sig := signalOf(name); sig != 0 && !j.reaped {
		_ = syscall.Kill(to, sig)
	}
}
