package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// unavailable makes the error of a failed stage, with what to do about it.
func unavailable(stage string, err error) *StageError {
	var no syscall.Errno
	if errors.As(err, &no) {
		err = no // without "fork/exec /proc/self/exe"
	}
	if stage == "clone" && no == syscall.ENOSPC { // user_namespaces(7)
		return &StageError{
			Stage: stage, Err: fmt.Errorf("no more user namespaces can be made: %w", no),
			Advice: "the limit is user.max_user_namespaces, here " + setting("user/max_user_namespaces") + ": sudo sysctl -w user.max_user_namespaces=10000",
		}
	}
	return &StageError{Stage: stage, Err: err, Advice: advise(stage)}
}

// advise names the command that mends a machine on which stage fails.
func advise(stage string) string {
	switch {
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Getuid() != 0:
		return "AppArmor restricts user namespaces here: toold doctor prints the command that gives toold a profile; for all programs: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case setting("kernel/unprivileged_userns_clone") == "0" && os.Getuid() != 0:
		return "the kernel is told to refuse user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case stage == launcherBwrap:
		return "bwrap 0.8 or later is needed, as the distribution has it (bwrap --version); SECURITY.md tells what it cannot do"
	case stage == "mount /proc":
		return "parts of /proc are masked, as in default containers: start the container with --security-opt systempaths=unconfined"
	case stage == "clone", strings.HasPrefix(stage, "mount "), strings.HasPrefix(stage, "make "):
		return "user namespaces are refused here, as in default containers: start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
	case stage == "landlock":
		return "a kernel of 5.13 or later with landlock in its lsm= list is needed: cat /sys/kernel/security/lsm"
	case stage == "seccomp":
		return "a kernel with CONFIG_SECCOMP_FILTER and the build of toold for amd64 or arm64 are needed"
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
