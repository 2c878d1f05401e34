//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/execution"
)

// checkNoProcess checks that no process of the case has a command line that
// begins so: at once, and if the case says so some time later.
func (r *run) checkNoProcess(prefix string) string {
	soon := time.Duration(0)
	if r.c.Options.KillDaemonAtMS != nil {
		soon = patience // what a dead daemon leaves is killed by the kernel, in its own time
	}
	return execution.NoProcess(r.c, prefix, r.p.mark, r.p.base, soon)
}

// checkSideEffects looks at files and processes.
func (r *run) checkSideEffects(ctx context.Context, raw json.RawMessage) string {
	want, err := execution.ReadEffects(raw)
	if err != nil {
		return err.Error()
	}
	defer want.CleanUp(r.p.site.workspace)
	if why := want.Check(r.p.site.workspace); why != "" || want.ProcessAlive == "" {
		return why
	}
	return r.checkKept(ctx, want.ProcessAlive, want.ListedAsLeftover, want.KillableByID)
}

// usage is what a daemon holds.
type usage struct {
	FDs, Ptys, Threads, Children, Zombies, Cgroups int
}

// warmShells is how many shells a daemon keeps ready by default.
const warmShells = 2

// settledUsage is what a daemon holds when it has stopped to change: when its shells
// are ready, unless it cannot keep any here.
func settledUsage(ctx context.Context, pid int) usage {
	suite.Poll(time.Minute, func() bool { return usageOf(pid).Children >= warmShells })
	last, same := usageOf(pid), 0
	for same < 20 && suite.Sleep(ctx, 50*time.Millisecond) == nil {
		now := usageOf(pid)
		if same++; now != last {
			last, same = now, 0
		}
	}
	return last
}

func usageOf(pid int) usage {
	u := usage{}
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		to, _ := os.Readlink(link)
		if strings.HasPrefix(to, "/dev/pts/") || to == "/dev/ptmx" {
			u.Ptys++
		}
		u.FDs++
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	u.Threads = len(threads)
	for _, child := range childrenOf(pid) {
		u.Children++
		if child.state == "Z" {
			u.Zombies++
		}
	}
	u.Cgroups = cgroupsBelow(pid)
	return u
}

type child struct {
	pid   int
	state string
}

// childrenOf lists the children of a process, zombies among them (proc(5), stat).
func childrenOf(pid int) (list []child) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range files {
		stat, err := os.ReadFile(path)
		end := bytes.LastIndexByte(stat, ')')
		if err != nil || end < 0 {
			continue
		}
		fields := strings.Fields(string(stat[end+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			list = append(list, child{id, fields[0]})
		}
	}
	return list
}

// cgroupsBelow counts the groups below the one in which a process is.
func cgroupsBelow(pid int) (n int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	for line := range strings.Lines(string(text)) {
		_, group, ok := strings.Cut(strings.TrimSpace(line), "0::")
		if !ok || group == "/" {
			continue // in the root group there are those of everybody
		}
		filepath.WalkDir(filepath.Join("/sys/fs/cgroup", group), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				n++
			}
			return nil
		})
	}
	return n
}

// daemonCheck checks the daemon when every repetition is over.
func (p *execPlayer) daemonCheck(ctx context.Context, name string, want json.RawMessage) error {
	switch name {
	case "daemon_alive":
		return p.answers(ctx)
	case "daemon_rss_growth_mb_max":
		var limit int64
		if err := json.Unmarshal(want, &limit); err != nil {
			return err
		}
		if peak := memory(p.daemon.pid, "VmHWM"); peak == 0 || peak-p.before > limit<<20 {
			return fmt.Errorf("it grew from %d KiB to %d KiB", p.before>>10, peak>>10)
		}
		return nil
	}
	var names []string
	if err := json.Unmarshal(want, &names); err != nil {
		return err
	}
	now := usage{}
	grown := ""
	// What is left ends by itself soon, or never, as it does in a case that must fail.
	limit := patience
	if p.c.MustFail != "" {
		limit = time.Second
	}
	suite.Poll(limit, func() bool {
		now = usageOf(p.daemon.pid)
		grown = leaked(p.usage, now, names)
		return grown == ""
	})
	if grown != "" {
		return fmt.Errorf("%s: it holds %+v, before it held %+v", grown, now, p.usage)
	}
	return nil
}

// leaked names what a daemon holds more of than it did, or more than it may
// ("threads<=40").
func leaked(before, now usage, names []string) string {
	for _, name := range names {
		what, limit, bounded := strings.Cut(name, "<=")
		had, has := 0, 0
		switch what {
		case "fds":
			had, has = before.FDs, now.FDs
		case "pts", "ptys":
			had, has = before.Ptys, now.Ptys
		case "threads":
			had, has = before.Threads, now.Threads
		case "children":
			had, has = before.Children, now.Children
		case "zombies":
			had, has = 0, now.Zombies
		case "cgroups":
			had, has = before.Cgroups, now.Cgroups
		default:
			return "nobody knows how to count " + what
		}
		if bounded {
			had, _ = strconv.Atoi(limit)
		}
		if has > had {
			return name
		}
	}
	return ""
}

// answers checks that the daemon is there and serves.
func (p *execPlayer) answers(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := p.follow(limit, "(afterwards)", 0)
	if err != nil {
		return err
	}
	c.close()
	return nil
}

// clockStep is by how much the wall clock is set forward while a command runs:
// more than the time limits of the cases.
const clockStep = time.Hour

// stepClock sets the clock of the machine forward and back again. Only for a
// machine that nothing else needs; see stepRefused.
func (r *run) stepClock(ctx context.Context) error {
	step := func(by time.Duration) error {
		now := syscall.NsecToTimeval(time.Now().Add(by).UnixNano())
		return syscall.Settimeofday(&now)
	}
	if err := step(clockStep); err != nil {
		return err
	}
	defer step(-clockStep)
	return suite.Sleep(ctx, 500*time.Millisecond)
}

// stepRefused returns why the clock must not be set, "" if it may.
func stepRefused() string {
	if os.Getenv("TOOLD_STEP_CLOCK") == "" {
		return "the case sets the clock of the machine; TOOLD_STEP_CLOCK=1 allows it"
	}
	var now syscall.Timeval
	if err := syscall.Gettimeofday(&now); err != nil {
		return err.Error()
	}
	if err := syscall.Settimeofday(&now); err != nil {
		return "the clock of this machine cannot be set: " + err.Error()
	}
	return ""
}

// checkKept checks a process that was meant to go on: it is there, and as a call of
// its own it is listed and can be cancelled.
func (r *run) checkKept(ctx context.Context, prefix string, listed, killable bool) string {
	// A background call may be answered before its shell has started it.
	if !suite.Poll(patience, func() bool { return execution.Alive(prefix, r.p.mark, r.p.base) != "" || r.outputID() == r.id }) || execution.Alive(prefix, r.p.mark, r.p.base) == "" {
		return prefix + " is not there any more"
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if listed {
		answer, err := r.ask(limit, map[string]any{"message_type": "list_calls", "request_id": "what runs"})
		if err != nil || !strings.Contains(text(answer["calls"]), r.outputID()) {
			return fmt.Sprintf("%s is not listed: %.300s (%v)", r.outputID(), text(answer), err)
		}
	}
	if !killable {
		return ""
	}
	if err := r.send(map[string]any{"message_type": "cancel", "tool_call_id": r.outputID()}); err != nil {
		return err.Error()
	}
	err := r.p.rec.wait(limit, func(frames []frame) bool {
		return slices.ContainsFunc(frames, func(f frame) bool {
			m, _ := f.value.(map[string]any)
			return m["tool_call_id"] == r.outputID() && typeIs(m, "background_ended")
		})
	})
	if line := execution.Alive(prefix, r.p.mark, r.p.base); err != nil || line != "" {
		return fmt.Sprintf("is not ended by a cancel: %s (%v)", line, err)
	}
	return ""
}
