package bash

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/shell"
	"github.com/toold/toold/tools"
)

// confined is a call whose profile denies something of each kind.
func confined() *invocation {
	return &invocation{dir: "/w/sub", profile: sandbox.Profile{
		Mode: sandbox.WorkspaceWrite, Workspace: "/w", Hide: []string{"/home/u/.ssh"}, Protect: []string{"/w/.git/config", "/w/sub/.vscode"},
		Sockets: []string{"/run/listed.sock"},
		Limits:  sandbox.Limits{OpenFiles: 64, FileBytes: 1 << 20, TmpBytes: 1 << 20, MemoryBytes: 1 << 30, Processes: 9},
	}}
}

// brief is what a denial is about, for comparing.
func brief(all []sandbox.Denial) string {
	var list []string
	for _, d := range all {
		list = append(list, fmt.Sprintf("%s %s %s %s", d.Kind, d.Op, d.Target, d.Setting))
	}
	return strings.Join(list, "; ")
}

func TestWhatAFailedCommandPrintsIsConfirmedByTheProfile(t *testing.T) {
	t.Parallel()
	v := confined()
	for line, want := range map[string]string{
		// Coreutils, bash and others of the C library.
		"touch: cannot touch '/etc/x': Read-only file system":                  "file write /etc/x sandbox.write",
		"touch: cannot touch ‘/etc/x’: Read-only file system":                  "file write /etc/x sandbox.write",
		"bash: line 1: /opt/file: Read-only file system":                       "file write /opt/file sandbox.write",
		"bash: line 1: /opt/my file: Read-only file system":                    "file write /opt/my file sandbox.write",
		"bash: line 3: .vscode/tasks.json: Read-only file system":              "protected change /w/sub/.vscode/tasks.json sandbox.protect",
		"mkdir: cannot create directory '/srv/x': Permission denied":           "file write /srv/x sandbox.write",
		"cp: cannot create regular file '/etc/x': Read-only file system":       "file write /etc/x sandbox.write",
		"mv: cannot move 'a' to '/etc/a': Read-only file system":               "file write /etc/a sandbox.write",
		"mv: cannot move '/w/.git' to '/w/g': Device or resource busy":         "protected change /w/.git sandbox.protect",
		"rm: cannot remove '/usr/bin/env': Read-only file system":              "file write /usr/bin/env sandbox.write",
		"tar: /srv/x: Cannot open: Read-only file system":                      "file write /srv/x sandbox.write",
		"/usr/bin/ld: cannot open output file /opt/a: Read-only file system":   "file write /opt/a sandbox.write",
		"cat: /home/u/.ssh/id: Permission denied":                              "file read /home/u/.ssh/id sandbox.hide",
		"ls: cannot open directory '/home/u/.ssh': Permission denied":          "file read /home/u/.ssh sandbox.hide",
		"cat: /home/u/.ssh/id: No such file or directory":                      "file read /home/u/.ssh/id sandbox.hide",
		"mkdir: cannot create directory '/srv/a/b': No such file or directory": "",
		"cat: /root/x: Permission denied":                                      "",
		"cat: note: No such file or directory":                                 "",
		"the sandbox said '/etc/x' is fine":                                    "",
		"touch: cannot touch 'x': Read-only file system":                       "",
		"touch: cannot touch '/tmp/x': Permission denied":                      "",

		// git
		"error: could not write config file ../.git/config: Device or resource busy":            "protected change /w/sub/../.git/config sandbox.protect",
		"error: could not lock config file /home/u/.gitconfig: Read-only file system":           "file write /home/u/.gitconfig sandbox.write",
		"fatal: could not create work tree dir '/srv/r': Read-only file system":                 "file write /srv/r sandbox.write",
		"fatal: Unable to create '/opt/r/.git/index.lock': Read-only file system":               "file write /opt/r/.git/index.lock sandbox.write",
		"fatal: unable to access 'https://git.example/r/': Could not resolve host: git.example": "host connect to git.example sandbox.network",

		// Python, Node, Go, Cargo
		"PermissionError: [Errno 1] Operation not permitted: '/etc/passwd'":                                 "file write /etc/passwd sandbox.write",
		"OSError: [Errno 30] Read-only file system: '/opt/x'":                                               "file write /opt/x sandbox.write",
		"OSError: [Errno 30] Read-only file system: 'a' -> '/opt/x'":                                        "file write /opt/x sandbox.write",
		"Error: EROFS: read-only file system, open '/opt/x'":                                                "file write /opt/x sandbox.write",
		"npm error rofs EROFS: read-only file system, mkdir '/usr/lib/node_modules/x'":                      "file write /usr/lib/node_modules/x sandbox.write",
		"Error: EACCES: permission denied, mkdir '/opt/x'":                                                  "file write /opt/x sandbox.write",
		"open /opt/x: read-only file system":                                                                "file write /opt/x sandbox.write",
		"go: could not create module cache: mkdir /opt/go: read-only file system":                           "file write /opt/go sandbox.write",
		"error: failed to write `/opt/x`\n\nCaused by:\n  Read-only file system (os error 30)":              "file write /opt/x sandbox.write",
		"error: failed to open: /opt/c/.package-cache\n\nCaused by:\n  Read-only file system (os error 30)": "file write /opt/c/.package-cache sandbox.write",
		"  Read-only file system (os error 30)":                                                             "",
		"open /w/sub/file: Permission denied":                                                               "",

		// Hosts
		"curl: (6) Could not resolve host: pkg.example":                                                        "host connect to pkg.example sandbox.network",
		"wget: unable to resolve host address ‘pkg.example’":                                                   "host connect to pkg.example sandbox.network",
		"npm error request to https://r.example/x failed, reason: getaddrinfo EAI_AGAIN r.example":             "host connect to r.example sandbox.network",
		"dial tcp: lookup proxy.example on 10.0.0.2:53: dial udp 10.0.0.2:53: connect: network is unreachable": "host connect to proxy.example sandbox.network",
		"ssh: connect to host 1.2.3.4 port 22: Network is unreachable":                                         "host connect to 1.2.3.4 sandbox.network",
		"ping: pkg.example: Temporary failure in name resolution":                                              "host connect to pkg.example sandbox.network",
		"socket.gaierror: [Errno -3] Temporary failure in name resolution":                                     "host connect to other machines sandbox.network",
		"ssh: connect to host localhost port 22: Network is unreachable":                                       "",
		"ssh: connect to host pkg.example port 22: Connection refused":                                         "",

		// Sockets
		"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?":             "socket connect to /run/docker.sock sandbox.unix_sockets",
		`psql: error: connection to server on socket "/run/postgresql/.s.PGSQL.5432" failed: No such file or directory`: "socket connect to /run/postgresql/.s.PGSQL.5432 sandbox.unix_sockets",
		"cannot connect to /run/listed.sock": "",

		// System calls
		"strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted":    "syscall use ptrace sandbox.profile",
		"unshare: unshare failed: Operation not permitted":                "syscall use unshare sandbox.profile",
		"bwrap: No permissions to create a new namespace":                 "syscall use unshare sandbox.profile",
		"mount: /mnt: permission denied.":                                 "syscall use mount sandbox.profile",
		"io_uring_queue_init failed: Operation not permitted":             "syscall use io_uring sandbox.profile",
		"we do not mount anything here, which is not permitted to others": "",

		// Limits
		"sh: 1: cannot create pipe: Too many open files":        "limit open more files open_files sandbox.limits.open_files",
		"dd: error writing '/tmp/big': No space left on device": "limit write more into /tmp tmp_bytes sandbox.limits.tmp_bytes",
		"dd: error writing '/w/big': No space left on device":   "",
		"dd: error writing 'big': File too large":               "limit make a file larger file_bytes sandbox.limits.file_bytes",
	} {
		if got := brief(v.inferred(executor.Exit{Code: 1}, "other\n"+line+"\n")); got != strings.Replace(want, "/w/sub/../", "/w/", 1) {
			t.Errorf("%s:\n got  %q\n want %q", line, got, want)
		}
	}
}

// A relative path is looked for where the program ran that printed it.
func TestADenialNamesThePathInTheDirectoryOfItsCommand(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"git config a.b c":                         "protected change /w/sub/.git/config sandbox.protect",
		"git -C r config a.b c":                    "protected change /w/sub/r/.git/config sandbox.protect",
		"cd ../other && git config a.b c":          "protected change /w/other/.git/config sandbox.protect",
		"cd ../other && make && git -C r config a": "protected change /w/other/r/.git/config sandbox.protect",
		"git config a.b c; cd r; git config a.b":   "protected change .git/config sandbox.protect",
		"cd \"$x\" && git config a.b c":            "protected change /w/sub/.git/config sandbox.protect",
	} {
		v := confined()
		v.effects = shell.New(shell.Options{Workspace: "/w", Resolver: shell.Host()}).Effects(script, "/w/sub")
		v.profile.Protect = []string{"/w/sub/.git/config", "/w/sub/r/.git/config", "/w/other/.git/config", "/w/other/r/.git/config"}
		line := "error: could not write config file .git/config: Device or resource busy"
		if got := brief(v.inferred(executor.Exit{Code: 4}, line+"\n")); got != want {
			t.Errorf("%s:\n got  %q\n want %q", script, got, want)
		}
	}
}

// masking is a call under rules, in the directory sub of the workspace /w.
func masking() *invocation {
	mask := func(path, rule string) sandbox.Mask { return sandbox.Mask{Path: path, Rule: rule} }
	return &invocation{dir: "/w/sub", profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: "/w", Masks: &sandbox.MaskSet{
		Hidden: []sandbox.Mask{mask("/w/sub/.env", "dotenv"), mask("/w/secrets", "secrets")},
		Fixed:  []sandbox.Mask{mask("/w/.git/config", "git-config"), mask("/w/.git/hooks", "git-hooks"), mask("/w/sub/deep/pinned", "pinned")},
	}}}
}

func TestAMaskIsToldOnlyWhereALineTellsOfARefusalOfItsPath(t *testing.T) {
	t.Parallel()
	v := masking()
	for text, want := range map[string]string{
		".\n..\n.env\na.go": "",
		"error: bad config": "",
		"hooks":             "",
		"see secrets/x and ../.git/config for more":                     "",
		"?? .env\n?? hooks/\nnothing added to commit":                   "",
		"FAIL config_test.go: the config has no .env":                   "",
		"config is wrong\ncat: /root/x: Permission denied":              "",
		"cat: /etc/hooks/config: Permission denied":                     "",
		"cat: /w/.env: Permission denied":                               "",
		"cat: .env: No such file or directory":                          "",
		"bash: line 1: .env: Read-only file system":                     "change .env dotenv",
		"mv: cannot move '.env' to 'x': Device or resource busy":        "change .env dotenv",
		"ls: cannot access '../.git/config': No such file or directory": "",
		"cat: .environment: Permission denied":                          "",

		"cat: .env: Permission denied":                                                "read .env dotenv",
		"cat: /w/sub/.env: Permission denied":                                         "read .env dotenv",
		"cat: ../sub/.env: Permission denied":                                         "read .env dotenv",
		"chmod: changing permissions of '.env': Operation not permitted":              "read .env dotenv",
		"PermissionError: [Errno 13] Permission denied: '.env'":                       "read .env dotenv",
		`error: open(".env"): Permission denied`:                                      "read .env dotenv",
		"cat: ../secrets/a/b: Permission denied":                                      "read /w/secrets secrets",
		"cat: a/b: Permission denied":                                                 "",
		"cat: secrets/a: Permission denied":                                           "read /w/secrets secrets", // after cd
		"error: failed to read .env\n\nCaused by:\n  Permission denied (os error 13)": "read .env dotenv",
		"error: could not write config file .git/config: Device or resource busy":     "change /w/.git/config git-config", // after cd
		"touch: cannot touch '/w/.git/hooks/x': Read-only file system":                "change /w/.git/hooks git-hooks",
		"rm: cannot remove 'deep/pinned': Device or resource busy":                    "change deep/pinned pinned",
		"bash: line 1: pinned: Read-only file system":                                 "change deep/pinned pinned", // after cd
	} {
		var got []string
		for _, d := range v.maskedIn("other\n" + text + "\n") {
			got = append(got, strings.Join([]string{d.Op, d.Target, d.Setting}, " "))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s:\n got  %q\n want %q", text, got, want)
		}
	}
}

// A model can do nothing about it, and a person has to know the setting.
func TestTheHintAboutTheNetworkNamesWhatOpensIt(t *testing.T) {
	t.Parallel()
	for tier, want := range map[sandbox.Tier]string{
		sandbox.TierA: "sandbox: {network: proxy}", sandbox.TierB: "sandbox: {network: proxy}", sandbox.TierBwrap: "sandbox: {network: full}", sandbox.TierC: "sandbox: {network: full}",
	} {
		v := confined()
		v.profile.Tier = tier
		if runtime.GOOS != "linux" {
			want = "sandbox: {network: full}"
		}
		got := v.inferred(executor.Exit{Code: 1}, "npm error request to https://r.example/x failed, reason: getaddrinfo EAI_AGAIN r.example\n")
		if len(got) != 1 || !strings.Contains(got[0].Hint, want) || !strings.Contains(got[0].Hint, "no argument of a call opens it") {
			t.Errorf("in tier %v: %+v", tier, got)
		}
	}
}

func TestNothingIsInferredWhereNothingConfines(t *testing.T) {
	t.Parallel()
	v := confined()
	v.profile.Mode = sandbox.FullAccess
	if got := v.inferred(executor.Exit{Code: 1}, "touch: cannot touch '/etc/x': Read-only file system\nunshare: failed: Operation not permitted\ncurl: Could not resolve host: a.example\n"); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestAPortThatLeadsNowhereIsTold(t *testing.T) {
	t.Parallel()
	v := confined()
	v.profile.Ports = []uint16{80, 443}
	got := brief(v.inferred(executor.Exit{Code: 1}, "ssh: connect to host git.example port 22: Connection refused\ncurl: (7) Failed to connect to git.example port 443 after 1 ms\ncurl: (6) Could not resolve host: a.example\n"))
	if want := "host connect to git.example:22 sandbox.egress.ports"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What toold refused itself comes first, is told for certain, and once.
func TestAResultTellsEachDenialOnce(t *testing.T) {
	t.Parallel()
	v := confined()
	r := tools.Result{Text: "Exit code: 1", Exit: &tools.Exit{Code: 1}}
	v.addDenials(&r, executor.Exit{Code: 1, Limit: "processes"}, refused{
		hosts: []egress.Refusal{
			{Host: "no.example", Why: &sandbox.Denial{Setting: "team:7", Hint: "denied by rule team:7"}},
			{Host: "in.example", Port: 443, Why: errors.New("in.example has the address 10.0.0.1: that is no public address; sandbox.egress.private lists those that may be reached all the same")},
		},
		seen:    seen{taken: []protect.Incident{{Path: "/w/sub/.envrc", Why: "other programs run or obey what stands in it", Kept: "/q/1"}}},
		sockets: []string{"/srv/agent\x1b.sock"},
	}, strings.Repeat("bash: line 3: .envrc: Read-only file system\ntouch: cannot touch '/etc/x': Read-only file system\n", 5))
	want := []string{
		"limit start more processes processes sandbox.limits.processes",
		"socket connect to /srv/agent\x1b.sock sandbox.unix_sockets",
		"name look up no.example team:7",
		"host connect to in.example:443 sandbox.egress.private",
		"protected make /w/sub/.envrc sandbox.protect",
		"file write /etc/x sandbox.write",
	}
	if diff := cmp.Diff(strings.Join(want, "; "), brief(r.Denials)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	lines := strings.Split(r.Text, "\n")
	if len(lines) != 1+len(want) || lines[0] != "Exit code: 1" || strings.Contains(r.Text, "\x1b") {
		t.Fatalf("%q", r.Text)
	}
	for i, line := range lines[1:] {
		exact := strings.HasPrefix(line, "Refused by the sandbox: cannot ")
		inferred := strings.HasPrefix(line, "Probably refused by the sandbox (inferred from the output): cannot ")
		if exact == inferred || exact != r.Denials[i].Exact || !strings.Contains(line, r.Denials[i].Setting) {
			t.Errorf("%q of %+v", line, r.Denials[i])
		}
	}
	if !r.IsError {
		t.Error("a call from which something was taken away did not fail")
	}
}

func TestOfACommandThatWorkedNothingIsInferred(t *testing.T) {
	t.Parallel()
	r := tools.Result{Exit: &tools.Exit{}}
	if confined().addDenials(&r, executor.Exit{}, refused{}, "touch: cannot touch '/etc/x': Read-only file system\n"); r.Text != "" || r.Denials != nil || r.IsError {
		t.Errorf("%+v", r)
	}
}

func TestTheEndOfTheOutputIsKept(t *testing.T) {
	t.Parallel()
	end := &tail{}
	for range 5 {
		must.Get(end.Write([]byte(strings.Repeat("x", tailBytes-1) + "é")))(t)
	}
	if got := end.text(); len(got) > tailBytes || len(end.last) > 2*tailBytes || !strings.HasSuffix(got, "xé") {
		t.Errorf("%d bytes, the last of them %q", len(got), got[len(got)-5:])
	}
}

// Whatever a command prints: little is told, on single lines without escapes, only
// as inferred, and nothing that the profile would have let through.
func FuzzWhatIsInferred(f *testing.F) {
	for _, seed := range []string{
		"touch: cannot touch '/etc/x': Read-only file system", "\x1b]0;a\a: '/etc/\x1b[2J': Permission denied: write",
		"a: b: c/d: Read-only file system", "  Read-only file system", "dial tcp: lookup \u202ea: network is unreachable",
		strings.Repeat("'/a' ", 500) + "Read-only file system", strings.Repeat("cannot write /x/: Permission denied\n", 300),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := confined()
		r := tools.Result{}
		v.addDenials(&r, executor.Exit{Code: 1}, refused{}, text)
		if len(r.Denials) > mostDenials || strings.Count(r.Text, "\n") > mostDenials {
			t.Errorf("%d denials in %q", len(r.Denials), r.Text)
		}
		if strings.ContainsFunc(strings.ReplaceAll(r.Text, "\n", ""), unicode.IsControl) {
			t.Errorf("control characters in %q", r.Text)
		}
		for _, d := range r.Denials {
			if d.Exact || d.Setting == "" || d.Hint == "" || len(d.Target) > 2*longestPath {
				t.Errorf("%+v", d)
			}
			if d.Kind == sandbox.DeniedFile && d.Op == "write" && strings.HasPrefix(d.Target, "/w/") {
				t.Errorf("%s may be written", d.Target)
			}
		}
	})
}
