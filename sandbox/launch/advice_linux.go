package launch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/toold/toold/sandbox"
)

func unavailable(stage string, err error) *sandbox.StageError {
	var no syscall.Errno
	if errors.As(err, &no) {
		err = no // without "fork/exec /proc/self/exe"
	}
	if stage == "clone" && no == syscall.ENOSPC { // user_namespaces(7)
		kind, advice := namespaceLimit()
		return &sandbox.StageError{Stage: stage, Err: fmt.Errorf("no more %s namespaces can be made: %w", kind, no), Advice: advice}
	}
	return &sandbox.StageError{Stage: stage, Err: err, Advice: cmp.Or(shortage(stage, no), advise(stage, no))}
}

const stageGroup = "make a control group"

// Prefixes of the stages that mount, and of those that start a process or thread.
var (
	mounting = []string{"mount ", "protect ", "hide ", "mask ", "fasten ", "pin ", "keep ", "copy the ", "take the cache ", "open root ", "prepare root "}
	starting = []string{"clone", "start ", "prepare a shell "}
)

// shortage returns the advice if a stage failed because a limit of the kernel was reached, or "". See clone(2),
// cgroups(7), openat2(2), and fs.mount-max in proc_sys_fs(5).
func shortage(stage string, no syscall.Errno) string {
	begins := func(prefix string) bool { return strings.HasPrefix(stage, prefix) }
	mounts, starts := slices.ContainsFunc(mounting, begins), slices.ContainsFunc(starting, begins)
	switch {
	case no == syscall.EAGAIN && stage == stageGroup:
		return "the control group of toold may have no more below it: raise cgroup.max.descendants and cgroup.max.depth there or above"
	case no == syscall.EAGAIN && mounts:
		return "a directory was renamed while the sandbox was made: make the call again"
	case no == syscall.EAGAIN && starts:
		return "too many processes and threads: raise sandbox.limits.processes, or the limit of the user or the container (ulimit -u, pids.max)"
	case no != syscall.ENOSPC:
		return ""
	case stage == stageGroup:
		return "the kernel has no more control groups: remove some that no process is in"
	case begins("make a place for "):
		return "raise sandbox.limits.tmp_bytes"
	case begins("make an overlay "):
		return "make room on the disk of the state directory"
	case mounts:
		return fmt.Sprintf("the sandbox would have more mounts than the kernel allows (fs.mount-max, here %s), and each protected or masked path takes up to three: ask the user to remove some of these, or to raise it (sysctl)", setting("fs/mount-max"))
	}
	return ""
}

// namespaceLimit returns the kind of namespace whose limit was probably reached, and the command that raises it. The
// kernel does not report the kind. Each kind has its own limit, and the lowest is reached first.
func namespaceLimit() (kind, advice string) {
	lowest := uint64(math.MaxUint64)
	for _, k := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		limit, err := strconv.ParseUint(setting("user/max_"+k+"_namespaces"), 10, 64)
		if err == nil && limit < lowest {
			kind, lowest = k, limit
		}
	}
	if kind == "" {
		return "user", "look at the limits: sysctl -a | grep namespaces"
	}
	key := "user.max_" + kind + "_namespaces"
	return kind, fmt.Sprintf("the limit is %s, here %d: sudo sysctl -w %[1]s=%[3]d", key, lowest, max(10_000, 2*min(lowest, math.MaxInt32/2)))
}

// advise returns the command that fixes a machine on which stage fails. bwrap reports no error number.
func advise(stage string, no syscall.Errno) string {
	refused := slices.Contains([]syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EUSERS}, no)
	switch {
	case stage == "landlock":
		return "a kernel of 5.13 or later with landlock in its lsm= list is needed: cat /sys/kernel/security/lsm"
	case stage == "seccomp":
		return "a kernel with CONFIG_SECCOMP_FILTER and the build of toold for amd64 or arm64 are needed"
	case !refused && stage != launcherBwrap:
		return "run toold doctor to see what this machine offers"
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Getuid() != 0:
		return "AppArmor restricts user namespaces here: toold doctor prints the command that gives toold a profile; for all programs: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case setting("kernel/unprivileged_userns_clone") == "0" && os.Getuid() != 0:
		return "the kernel is configured to refuse user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case stage == launcherBwrap:
		return "bwrap 0.8 or later is needed, as the distribution has it (bwrap --version); see SECURITY.md for its limits"
	case stage == "mount /proc":
		return "parts of /proc are masked, as in default containers: start the container with --security-opt systempaths=unconfined"
	case stage == "clone", strings.HasPrefix(stage, "mount "), strings.HasPrefix(stage, "make "):
		return "user namespaces are refused here, as in default containers: start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
	}
	return "run toold doctor to see what this machine offers"
}

func setting(name string) string {
	b, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
