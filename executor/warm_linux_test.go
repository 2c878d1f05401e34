package executor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

func scriptsThatLook() []string {
	allBytes := make([]byte, 0, 255)
	for b := 1; b < 256; b++ {
		allBytes = append(allBytes, byte(b))
	}
	return []string{
		"", " ", "\n", "true", "exit 7", "exit 7\n:", "(exit 3)", "return 4", "exec true", "exec false", "kill -TERM $$", "kill -KILL $$",
		`echo "$0|$_|$-|$#|$*|$?|$!|$LINENO|$BASH_LINENO|$BASH_SOURCE|$BASH_SUBSHELL|$SHLVL|$OPTIND"`,
		`echo "$BASH_EXECUTION_STRING"; declare -p BASH_EXECUTION_STRING BASH_ARGV BASH_ARGC FUNCNAME SECONDS _ PPID OLDPWD PWD`,
		`sleep 0.01; declare -p BASH_ENV`,
		"declare -p", "set", "set -o; shopt", "compgen -v; compgen -A function; compgen -b | md5sum", "env -0", "env -0; :", "export -p",
		"trap -p; jobs; alias; declare -F; hash; history; dirs; umask; ulimit -a; ulimit -Ha; times >/dev/null", "enable; bind -l | head -1", "caller; f() { caller 0; }\nf",
		"printf '%(%s)T' -2 | wc -c; [ $(( $(date +%s) - $(printf '%(%s)T' -2) )) -le 2 ] && echo fresh",
		"ls -l /proc/self/fd | sed 's/.* //'; :", "for fd in /dev/fd/*; do echo $fd; done", "exec 3</dev/null; exec {x}</dev/null; echo $x; echo /proc/$$/fd/*",
		"cat /proc/self/cmdline", "cat /proc/self/cmdline; :", "cat /proc/self/environ", "cat /proc/self/environ; :",
		"tr -d '\\0' </proc/$$/cmdline; :", "tr -d '\\0' </proc/$$/environ; :",
		// Read at once: read -r goes back to the end of its line, and the text may have another length by then (SigQ).
		"mapfile -t s </proc/$$/status; for l in \"${s[@]}\"; do case $l in Sig[BIC]*|Shd*|Cap*|NoNew*|Seccomp:*|[UG]id*|Groups*|Umask*|Threads*) echo \"$l\";; esac; done",
		"grep -E 'Sig[BIC]|Shd|Cap|Umask' /proc/self/status",
		"cat /proc/$$/limits /proc/self/oom_score_adj; readlink /proc/$$/exe /proc/$$/cwd /proc/$$/root", "cut -d' ' -f 5-8 /proc/$$/stat | tr -d 0-9",
		"stty -a; stty size; tty; ps -o tpgid= -p $$ | sed 's/ *[0-9]\\+/N/'", "nice; chrt -p $$ | cut -d: -f2; ionice -p $$; taskset -p $$ | cut -d: -f2",
		"if", "echo a\necho b; (", "echo 'open", "a=(1\n", "cat <<E\nx\nE", "cat <<E\nx", "f() {\n", "}", "case x in", "echo a; fi", "no-such-program; echo $?", "./nope", "/", "a b c=(", "\x00"[:0],
		"echo one\n\nno-such\n", "x=$(no-such)\necho $?", "set -e; false; echo never", "set -u; echo $nope; echo never", "set -x; echo a", "set -n; echo a", "set -v\necho a", "set -o pipefail; false | true; echo $? ${PIPESTATUS[@]}",
		"true | false; echo ${PIPESTATUS[@]}", "f() { return 3; }; f; echo $?", "trap 'echo bye $?' EXIT; exit 5", "trap 'echo err $LINENO' ERR\nfalse\nfalse", "trap 'echo term; exit 9' TERM; kill -TERM $$; echo after", "trap 'echo dbg' DEBUG; true; true",
		"kill -INT $$; echo $?", "kill -HUP $$", "kill -PIPE $$; echo alive", "(kill -TERM $BASHPID); echo $?", "sleep 0 & wait; echo $?", "echo a | cat | cat", "cat <(echo sub)", "coproc cat; echo ${COPROC[@]} | tr 0-9 N; exec {COPROC[1]}>&-; wait",
		"exec 2>&1; no-such", "exec >/dev/null; echo gone", "exec 1>&-; echo x; echo $?", "read x; echo \"$? [$x]\"", "cat", "cd /; pwd; echo $OLDPWD; cd - >/dev/null; pwd", "cd /nope; pwd", "umask 077; umask", "ulimit -n 10; ulimit -n",
		"$0 -c 'echo $0 $1' x y", "bash -c 'env -0; echo $-'", "bash -x -c :", "env -i bash -c 'declare -p'", "echo $RANDOM$SRANDOM$EPOCHSECONDS$BASHPID | tr -d 0-9", "echo ${!B*}", "unset BASH_ENV; echo $?", "BASH_ENV=/nope bash -c 'echo in'",
		"eval 'echo $LINENO'; echo ${BASH_SOURCE[@]}", "source /dev/null; declare -p BASH_ARGC", ". /nope; echo $?", "shopt -s extdebug; declare -p BASH_ARGC BASH_ARGV", "select x in a; do break; done", "[[ -t 0 ]]; echo $?; [[ -t 2 ]]; echo $?",
		"printf %s \"$BASH_EXECUTION_STRING\" | md5sum #" + string(allBytes),
		"echo '" + strings.ReplaceAll(string(allBytes), "'", "") + "' | od -c", "echo \"'\\''\" ''\\'''", "echo $'\\001\\177' | od -c", "\xff\xfe", "é=1; echo ü", "# \xe2'", "echo \xe2\x28'\xa1'", "\r\n", "echo a\r\nno-such",
		"echo " + strings.Repeat("x", room-len("echo ")-1), "echo " + strings.Repeat("x", room-len("echo ")), "#" + strings.Repeat("'", room-1), "echo $((1+1))" + strings.Repeat(" ", room-len("echo $((1+1))")),
		"kill -KILL $$; #", strings.Repeat("\n", 1000) + "no-such",
	}
}

// What a run can show of time and chance, and what a listing of all variables
// shows of those that a shell makes when they are first used.
var incidental = regexp.MustCompile(`(?m)` + strings.Join([]string{
	`^(declare -\S+ |)(BASHPID|EPOCHREALTIME|EPOCHSECONDS|RANDOM|SRANDOM)="?[0-9.]*"?$`,
	`^(declare -\S+ |)(PIPESTATUS|BASH_ARGC)=\(.*\)$\n?`,
	`^PIPESTATUS$\n`,
	`^(declare -\S+ |)SECONDS(="?[0-9]+"?)?$\n?`,
	`TOOLD_CALL="?[A-Z2-7]+`,
	`\$\$?[0-9]+|pid [0-9]+'s|/proc/[0-9]+|pipe:\[[0-9]+\]|/dev/pts/[0-9]+|bash: [0-9]+|PPID="?[0-9]+"?`,
	`(?:\[1\] |_PID=)"?[0-9]+"?`,
}, "|"))

type seen struct{ Out, Err, End string }

func (s seen) plain() seen {
	replace := func(t string) string { return incidental.ReplaceAllString(t, "") }
	return seen{replace(s.Out), replace(s.Err), s.End}
}

func see(t *testing.T, c Command) seen {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	e, err := Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%.80q: %v", c.Script, err)
	}
	return seen{out.String(), errs.String(), fmt.Sprint(e.Code, e.Signal, e.Reason, len(e.Leftovers))}
}

// seeWaited runs a command in a warm shell. One refuses when the machine has changed since it
// began: then the next one is taken.
func seeWaited(t *testing.T, c Command) seen {
	t.Helper()
	for {
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		shell := ready(t, c)
		e, err := shell.run(t.Context(), c)
		if err == nil {
			return seen{out.String(), errs.String(), fmt.Sprint(e.Code, e.Signal, e.Reason, len(e.Leftovers))}
		}
		if !strings.Contains(err.Error(), "has changed") {
			t.Fatalf("%.80q: %v", c.Script, err)
		}
	}
}

func TestAScriptCannotTellThatItsShellWaited(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for _, mode := range []Terminal{Split, Single, Off} {
		for _, profile := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.FullAccess} {
			t.Run(mode.String()+"/"+profile.String(), func(t *testing.T) {
				t.Parallel()
				c := inWorkspace(t, mode, profile)
				scripts := scriptsThatLook()
				if profile != sandbox.FullAccess {
					scripts = append(scripts, "x=$(ps -eo args=); echo \"$x\" | sed 's/ *$//'", "pgrep -fc .", "ls -A /tmp /dev /run $PWD; wc -l </proc/self/mountinfo")
				}
				every := 3 // of three scripts, but all on a split terminal in a sandbox, as most calls have
				if mode == Split && profile == sandbox.WorkspaceWrite {
					every = 1
				}
				for i := int(mode) % every; i < len(scripts); i += every {
					c.Script = scripts[i]
					fresh, waited := see(t, c).plain(), seeWaited(t, c).plain()
					for fresh != waited {
						again := see(t, c).plain()
						if again == fresh {
							t.Errorf("%.80q: fresh (-), waited (+):\n%s", c.Script, cmp.Diff(fresh, waited))
							break
						}
						fresh, waited = again, seeWaited(t, c).plain() // the machine has changed meanwhile
					}
				}
			})
		}
	}
}

func inWorkspace(t *testing.T, mode Terminal, profile sandbox.Mode) Command {
	t.Helper()
	if why := MissingNamespaces(); why != "" && profile != sandbox.FullAccess {
		t.Skip("this machine gives no user namespaces with a /proc of their own: " + why)
	}
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	return Command{
		Dir: ws, Terminal: mode, Timeout: 5 * time.Minute, Grace: time.Minute,
		Env:     BaseEnv(EnvOptions{From: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + ws}}),
		Sandbox: sandbox.Profile{Mode: profile, Workspace: ws},
	}
}

func ready(t *testing.T, c Command) *shell {
	t.Helper()
	s := must.Get(startShell(t.Context(), c.shape(), true, nil))(t)
	return s
}

// MissingNamespaces returns why the machine refuses what the sandbox needs, or "". It asks the
// kernel without any code of toold, so that a fault of toold fails a test instead of skipping it.
var MissingNamespaces = sync.OnceValue(func() string {
	c := exec.Command("/bin/sh", "-c", "mount -t proc proc /proc")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if out, err := c.CombinedOutput(); err != nil {
		return err.Error() + ": " + string(out)
	}
	return ""
})

// A probe whose shell is killed fails: no fresh shell runs in its stead.
func TestAProbeFailsWhenItsShellIsGone(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Split, sandbox.WorkspaceWrite)
	s := ready(t, c)
	_ = syscall.Kill(s.process.PID(), syscall.SIGKILL)
	<-s.process.Alone()
	var out bytes.Buffer
	c.Script, c.Stdout = "echo ran", &out
	if _, err := s.run(t.Context(), c); !errors.Is(err, launch.ErrGone) || out.Len() > 0 {
		t.Errorf("got %v and %q, want an error and no output", err, out.String())
	}
}
