package cgroup

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

func openRoot(t *testing.T) *Root {
	t.Helper()
	r, err := Open()
	if err != nil {
		t.Skipf("no control groups for this test: %v", err)
	}
	t.Cleanup(r.Close)
	return r
}

func begin(t *testing.T, r *Root, l Limits, script string) (*Group, *exec.Cmd, string) {
	t.Helper()
	g := must.Get(r.New(l))(t)
	t.Cleanup(func() { _ = g.End() })
	cmd := exec.CommandContext(t.Context(), "/bin/bash", "-c", script)
	cmd.Env = append(os.Environ(), "GROUP="+g.dir)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, g.Start(cmd))
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	t.Cleanup(func() { _ = cmd.Wait() }) // after End, which comes first
	t.Cleanup(func() { _ = g.End() })
	return g, cmd, strings.TrimSpace(line)
}

func gone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, os.ErrNotExist)
}

func TestABombStopsAtTheLimitWhileOthersGoOn(t *testing.T) {
	t.Parallel()
	r := openRoot(t)
	g, _, _ := begin(t, r, Limits{Processes: 20}, `sh -c 'while :; do sleep 600 & done' 2>/dev/null; echo full; exec sleep 600`)
	now, err := strconv.Atoi(strings.Join(words(g.dir, "pids.current"), ""))
	if err != nil || now < 2 || now > 20 || !g.Met().Processes {
		t.Errorf("%d processes of at most 20, %v; met: %+v", now, err, g.Met())
	}
	if _, _, line := begin(t, r, Limits{Processes: 20}, `/bin/echo another`); line != "another" {
		t.Errorf("another group printed %q", line)
	}
	if err := g.End(); err != nil || !gone(g.dir) {
		t.Errorf("the group was not removed: %v", err)
	}
}

func TestTheEndFindsWhatHidesFromEverybodyElse(t *testing.T) {
	t.Parallel()
	r := openRoot(t)
	g, cmd, hidden := begin(t, r, Limits{}, `(exec setsid env -i bash -c 'echo $$; exec sleep 600') & wait $!`)
	must.Do(t, cmd.Process.Kill())
	if _, err := os.Stat("/proc/" + hidden); err != nil {
		t.Fatalf("the process has ended already: %v", err)
	}
	if err := g.End(); err != nil || !gone(g.dir) {
		t.Errorf("the group was not removed: %v", err)
	}
	if b, err := os.ReadFile("/proc/" + hidden + "/stat"); err == nil && !strings.Contains(string(b), ") Z ") {
		t.Errorf("the process lives: %s", b)
	}
}

func TestTheEndReachesGroupsThatACallHasMade(t *testing.T) {
	t.Parallel()
	r := openRoot(t)
	if r.unified {
		t.Skip("in version 2 a group with processes has none below it")
	}
	g, _, below := begin(t, r, Limits{}, `mkdir $GROUP/a $GROUP/a/b && echo $$ >$GROUP/a/b/cgroup.procs && echo $GROUP/a/b; exec sleep 600`)
	if gone(below) || len(words(below, processes)) != 1 {
		t.Fatalf("%s does not hold the process", below)
	}
	if err := g.End(); err != nil || !gone(g.dir) {
		t.Errorf("the group was not removed: %v", err)
	}
}

func TestAHogOfMemoryIsKilledAndTold(t *testing.T) {
	t.Parallel()
	r := openRoot(t)
	if !r.Memory() {
		t.Skipf("the control groups of %s do not bound memory", r.Dir())
	}
	g, cmd, _ := begin(t, r, Limits{MemoryBytes: 64 << 20}, `echo begun; sleep 600 & x=a; for i in {1..28}; do x=$x$x; done; sleep 600`)
	if err := cmd.Wait(); err == nil {
		t.Error("nothing was killed")
	}
	if !g.Met().Memory {
		t.Error("the limit is not told")
	}
}

func TestOnlyWhatAKilledDaemonLeftIsRemoved(t *testing.T) {
	if os.Getenv("TOOLD_TEST_DAEMON") != "" {
		holdGroup(t)
		return
	}
	t.Parallel()
	living := openRoot(t)
	daemon := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	daemon.Env = append(os.Environ(), "TOOLD_TEST_DAEMON=1")
	out := must.Get(daemon.StdoutPipe())(t)
	must.Do(t, daemon.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	root, pid, ok := strings.Cut(strings.TrimSpace(line), " ")
	if root == "none:" {
		t.Skipf("no second daemon has control groups here: %s", pid)
	}
	if err != nil || !ok {
		t.Fatalf("the daemon told %q, %v", line, err)
	}
	must.Do(t, daemon.Process.Kill())
	_ = daemon.Wait()
	if gone(root) {
		t.Fatal("nothing was left, so nothing is tested")
	}
	// Another test may be at it already, which this one's daemon does not wait for.
	for tries := 0; !gone(root); tries++ {
		openRoot(t)
		if tries == 1000 {
			t.Fatalf("%s was not removed", root)
		}
	}
	if b, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(b), ") Z ") {
		t.Errorf("a process of the killed daemon lives: %s", b)
	}
	if gone(living.dir) {
		t.Error("the root of a living daemon was removed")
	}
}

// holdGroup is the daemon of the test above: it tells of its root and of a process
// in it, and waits to be killed.
func holdGroup(t *testing.T) {
	r, err := Open()
	if err != nil {
		os.Stdout.WriteString("none: " + err.Error() + "\n")
		return
	}
	_, _, line := begin(t, r, Limits{}, `echo $$; exec sleep 600`)
	os.Stdout.WriteString(r.dir + " " + line + "\n")
	select {}
}

// Version 2 without any controller still ends what is in a group.
func TestVersionTwoStartsInTheGroupAndEndsIt(t *testing.T) {
	t.Parallel()
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	own, _ := os.ReadFile("/proc/self/cgroup")
	for _, p := range find(string(mounts), string(own)) {
		if !p.unified || unix.Access(p.dir, unix.W_OK) != nil {
			continue
		}
		r, err := p.make()
		if err != nil {
			t.Skipf("no group can be made: %v", err)
		}
		defer r.Close()
		if err := r.try(); err != nil {
			t.Skipf("no process can be started in a group: %v", err)
		}
		g, cmd, line := begin(t, r, Limits{}, `cat /proc/self/cgroup | grep ^0:; sleep 600`)
		if !strings.HasSuffix(line, "/"+filepath.Base(r.dir)+"/"+filepath.Base(g.dir)) {
			t.Errorf("the process is in %s, not in %s", line, g.dir)
		}
		if err := g.End(); err != nil || !gone(g.dir) {
			t.Errorf("the group was not removed: %v", err)
		}
		if err := cmd.Wait(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("the process ended otherwise: %v", err)
		}
		return
	}
	t.Skip("no hierarchy of version 2 can be written here")
}

func TestTheOwnGroupIsFound(t *testing.T) {
	t.Parallel()
	const v2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	const v1 = "31 24 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	for name, c := range map[string]struct {
		mounts, own string
		want        []location
	}{
		"version 2":               {v2, "0::/user.slice/a.scope\n", []location{{"/sys/fs/cgroup/user.slice/a.scope", true}}},
		"version 1":               {v1, "9:memory:/x\n8:pids:/a:b\n", []location{{"/sys/fs/cgroup/pids/a:b", false}}},
		"both":                    {v1 + v2, "8:pids:/\n0::/\n", []location{{"/sys/fs/cgroup", true}, {"/sys/fs/cgroup/pids", false}}},
		"several in one":          {"31 24 0:27 / /c rw - cgroup cgroup rw,cpu,pids\n", "8:cpu,pids:/a\n", []location{{"/c/a", false}}},
		"a part is mounted":       {"30 24 0:26 /docker/1 /c rw - cgroup2 cgroup2 rw\n", "0::/docker/1/own\n", []location{{"/c/own", true}}},
		"another part":            {"30 24 0:26 /docker/1 /c rw - cgroup2 cgroup2 rw\n", "0::/docker/12\n", nil},
		"above the namespace":     {"30 24 0:26 / /c rw - cgroup2 cgroup2 rw\n", "0::/../other\n", nil},
		"none":                    {"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "0::/\n", nil},
		"no line for version two": {v2, "8:pids:/\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			must.Match(t, c.want, find(c.mounts, c.own), cmp.AllowUnexported(location{}))
		})
	}
}

func FuzzFind(f *testing.F) {
	f.Add("30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a\n")
	f.Add("31 24 0:27 /x /p rw - cgroup cgroup rw,pids\n", "8:pids:/x/y\n")
	f.Fuzz(func(t *testing.T, mounts, own string) {
		for _, p := range find(mounts, own) {
			if strings.Contains(p.dir+"/", "/../") {
				t.Errorf("a group above the own: %q", p.dir)
			}
		}
	})
}

// BenchmarkGroup prints what a group of its own adds to the start of a process.
func BenchmarkGroup(b *testing.B) {
	r, err := Open()
	if err != nil {
		b.Skip(err)
	}
	defer r.Close()
	for _, c := range []struct {
		name string
		root *Root
	}{{"without", nil}, {"with", r}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				g := must.Get(c.root.New(Limits{Processes: 100}))(b)
				cmd := exec.CommandContext(b.Context(), "/bin/true")
				must.Do(b, g.Start(cmd))
				must.Do(b, errors.Join(cmd.Wait(), g.End()))
			}
		})
	}
}
