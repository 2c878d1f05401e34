package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

// machine is a home and a project in temporary folders, and an environment.
type machine struct {
	home, project string
	env           map[string]string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	m := machine{filepath.Join(base, "home"), filepath.Join(base, "project"), map[string]string{}}
	m.env["HOME"] = m.home
	for _, dir := range []string{m.home, m.project} {
		must.Do(t, os.MkdirAll(dir, 0o700))
	}
	return m
}

// write puts a file at a path below the machine's folders.
func (m machine) write(t *testing.T, path, content string) string {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func (m machine) options() Options {
	return Options{Dir: m.project, Getenv: func(k string) string { return m.env[k] }}
}

// loadText loads a file of the given content.
func (m machine) loadText(t *testing.T, content string) (Config, error) {
	t.Helper()
	o := m.options()
	o.Path = m.write(t, filepath.Join(m.home, "etc", "toold.yaml"), content)
	return Load(o)
}

func TestNoConfigurationIsNeeded(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got := must.Get(Load(m.options()))(t)
	if got.Listen != "127.0.0.1:7717" || got.Workspace != m.project || got.Policy != "" || got.File != "" {
		t.Errorf("got %+v", got)
	}
	if want := filepath.Join(m.home, ".local/state/toold"); got.StateDir != want {
		t.Errorf("state directory %s, want %s", got.StateDir, want)
	}
	p := got.Sandbox
	if p.Mode != sandbox.WorkspaceWrite || p.Network || p.Workspace != m.project {
		t.Errorf("got profile %+v", p)
	}
	for _, want := range []string{".ssh", ".aws", ".netrc", ".local/state/toold", ".config/toold"} {
		if !slices.Contains(p.Hide, filepath.Join(m.home, want)) {
			t.Errorf("%s is not hidden", want)
		}
	}
}

func TestEveryFaultOfAFileIsReported(t *testing.T) {
	t.Parallel()
	_, err := newMachine(t).loadText(t, "version: 1\nlisen: x\nlog:\n  levle: debug\nworkspace: [a]\n")
	for _, want := range []string{":2:1: unknown key", ":4:3: unknown key", ":5:12: workspace"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestAMisspeltKeyHidesNoOtherFault(t *testing.T) {
	t.Parallel()
	_, err := newMachine(t).loadText(t, "version: 1\nlimts: {}\nsandbox: {network: of}\nlisten: nowhere\n")
	for _, want := range []string{`:2:1: unknown key "limts"`, ":3:20: ", ":4:9: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not reported: %s\n%v", want, err)
		}
	}
}

func TestTheCommandLineWinsOverTheEnvironmentOverTheFile(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.env["TOOLD_CONFIG"] = m.write(t, filepath.Join(m.home, "c.yaml"),
		"version: 1\nlisten: 127.0.0.1:1\nlog: {level: debug}\nstate_dir: fromfile\n")
	m.env["TOOLD_LISTEN"] = "127.0.0.1:2"
	m.env["TOOLD_LOG_LEVEL"] = "warn"
	m.env["TOOLD_SOMETHING_ELSE"] = "ignored"
	o := m.options()
	o.Listen = "127.0.0.1:3"
	got := must.Get(Load(o))(t)
	if got.Listen != "127.0.0.1:3" || got.LogLevel != "warn" || got.StateDir != filepath.Join(m.home, "fromfile") {
		t.Errorf("got %+v", got)
	}
}

func TestOnlyTheDefaultFileMayBeMissing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	o := m.options()
	o.Path = "missing.yaml"
	if _, err := Load(o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a named missing file: %v", err)
	}
	m.write(t, filepath.Join(m.home, ".config/toold/config.yaml"), "version: 1\nterminal: off\n")
	m.write(t, filepath.Join(m.home, ".config/toold/policy.yaml"), "version: 1\n")
	got := must.Get(Load(m.options()))(t)
	if got.Terminal != "off" || got.Policy != filepath.Join(m.home, ".config/toold/policy.yaml") {
		t.Errorf("the default files were not read: %+v", got)
	}
}

func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, filepath.Join(m.home, "cache", "x"), "")
	m.write(t, filepath.Join(m.home, "private", "x"), "")
	got := must.Get(m.loadText(t, `version: 1
allowed_hosts: [box.example]
allowed_origins: ["https://box.example:8443"]
tokens: [{name: all, roles: [agent, approver, admin]}]
approval: {timeout: 1500ms}
sandbox:
  profile: danger-full-access
  i_understand_full_access: true
  network: full
  write: [~/cache]
  hide: [../private]
  limits: {processes: 0, memory_bytes: 64 MiB}
limits: {max_frame_bytes: 1048576, linger: 0s, timeout: 5s, ping: 500ms, idle: 1500ms}
env: {pass: [CI, APP_*], set: {A: "", B: two, C: ~/cache, D: "a~/b"}}
redact: [s3cret]
`))(t)
	check := func(name string, got, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	check("hosts", got.AllowedHosts, []string{"box.example"})
	check("origins", got.AllowedOrigins, []string{"https://box.example:8443"})
	check("tokens", got.Tokens, []Token{{"all", []string{"agent", "approver", "admin"}}})
	check("approval", got.ApprovalTime, 1500*time.Millisecond)
	check("mode", got.Sandbox.Mode, sandbox.FullAccess)
	check("network", got.Sandbox.Network, true)
	check("write", got.Sandbox.Write, []string{filepath.Join(m.home, "cache")})
	check("hide", slices.Contains(got.Sandbox.Hide, filepath.Join(m.home, "private")), true)
	check("processes", got.Sandbox.Limits.Processes, uint64(0))
	check("memory", got.Sandbox.Limits.MemoryBytes, uint64(64<<20))
	check("frame", got.Limits.MaxFrameBytes, int64(1<<20))
	check("linger", got.Limits.Linger, time.Duration(0))
	check("idle", got.Limits.Idle, 1500*time.Millisecond)
	check("env", got.Env, Env{[]string{"CI", "APP_*"}, map[string]string{"A": "", "B": "two", "C": filepath.Join(m.home, "cache"), "D": "a~/b"}})
	check("redact", got.Redact, []string{"s3cret"})
	if len(got.Warnings) != 2 || !strings.Contains(got.Warnings[1], "agent and admin: whoever has it approves its own calls") {
		t.Errorf("a token that approves itself gave the warnings %q", got.Warnings)
	}
}

// TestSecretsAreHiddenWhereVariablesMoveThem, and where they are otherwise.
func TestSecretsAreHiddenWhereVariablesMoveThem(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	elsewhere := t.TempDir()
	for variable, secret := range map[string]string{
		"CODEX_HOME": "environments.toml", "CLAUDE_CONFIG_DIR": ".credentials.json", "XDG_CONFIG_HOME": "gh", "GNUPGHOME": "", "PGPASSFILE": "", "PGSERVICEFILE": "", "PGSSLKEY": "",
	} {
		m.env[variable] = filepath.Join(elsewhere, variable)
		got := must.Get(Load(m.options()))(t)
		if !slices.Contains(got.Sandbox.Hide, filepath.Join(elsewhere, variable, secret)) || !slices.Contains(got.Sandbox.Hide, filepath.Join(m.home, ".codex/auth.json")) {
			t.Errorf("%s: hidden are %q", variable, got.Sandbox.Hide)
		}
	}
}

func TestWhatCannotBeHiddenIsToldOf(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, filepath.Join(m.project, ".env"), "")
	m.write(t, filepath.Join(m.project, "[id].ts"), "")
	got := must.Get(m.loadText(t, "version: 1\nsandbox:\n  hide: [.env, ~/none, here/none, \""+filepath.Join(m.project, "[id].ts")+"\"]\n"))(t)
	folder := filepath.Join(m.home, "etc")
	want := []string{
		"sandbox.hide: " + folder + "/.env does not exist: nothing is hidden there; \".env\" counts from the folder of the configuration file: write " + m.project + "/.env",
		"sandbox.hide: " + m.home + "/none does not exist: nothing is hidden there",
		"sandbox.hide: " + folder + "/here/none does not exist: nothing is hidden there; \"here/none\" counts from the folder of the configuration file: write the full path",
	}
	if diff := cmp.Diff(want, got.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if !slices.Contains(got.Sandbox.Hide, filepath.Join(m.project, "[id].ts")) || !slices.Contains(got.Sandbox.Hide, filepath.Join(m.home, "none")) {
		t.Errorf("hidden are %q", got.Sandbox.Hide)
	}
}

func TestAnUnsafeStateDirectoryHindersOnlyWhatRuns(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	o := m.options()
	o.Workspace = m.home
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "lies inside") {
		t.Errorf("to run calls: %v", err)
	}
	o.For = JudgeCalls
	got := must.Get(Load(o))(t)
	if !slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.HasPrefix(w, "no call could run so: the state directory") }) {
		t.Errorf("warnings are %q", got.Warnings)
	}
	for _, o.Workspace = range []string{m.home, "/", filepath.Join(m.home, "missing")} {
		o.For = ReachDaemon
		if got, err := Load(o); err != nil || len(got.Warnings) > 0 || got.Workspace != "" {
			t.Errorf("to reach a daemon from %s: %q, %q, %v", o.Workspace, got.Workspace, got.Warnings, err)
		}
	}
}

func TestFaultsOfTheFileAreShownWhereTheyStand(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, c := range []struct{ src, want string }{
		{"listen: 127.0.0.1:1\n", `:1:1: version is missing`},
		{"version: 2\n", `:1:10: version cannot be "2": this toold reads version 1`},
		{"version: 1\nlisen: x\n", `:2:1: unknown key "lisen": did you mean "listen"?`},
		{"version: 1\nlimits.ping: 3s\n", `:2:1: unknown key "limits.ping"`},
		{"version: 1\nlimits: {pong: 3s}\n", `:2:10: unknown key "pong" in limits: did you mean "ping"?`},
		{"version: 1\nlisten: [1]\n", `:2:9: listen: expected one value, found a list`},
		{"version: 1\nlisten: 0.0.0.0:7717\n", `:2:9: listen cannot be "0.0.0.0:7717": other machines can reach`},
		{"version: 1\nlisten: ':7717'\n", `other machines can reach this address: set tls.cert and tls.key`},
		{"version: 1\nlisten: localhost\n", `expected host:port`},
		{"version: 1\nlisten: 127.0.0.1:70000\n", `the port must be a number`},
		{"version: 1\ntls: {cert: a.pem}\n", `tls needs both cert and key`},
		{"version: 1\nterminal: spilt\n", `:2:11: terminal cannot be "spilt": expected split, single or off; did you mean "split"?`},
		{"version: 1\nlimits: {ping: 30}\n", `limits.ping cannot be "30": expected a duration with a unit`},
		{"version: 1\nlimits: {ping: 90s}\n", `limits.idle (1m30s) must be longer than limits.ping (1m30s)`},
		{"version: 1\nlimits: {timeout: 20m}\n", `limits.timeout is 20m0s: expected at most 10m0s`},
		{"version: 1\nlimits: {max_timeout: 60s}\n", `limits.max_timeout (1m0s) must not be shorter than limits.timeout`},
		{"version: 1\nlimits: {max_frame_bytes: 16MB}\n", `limits.max_frame_bytes cannot be "16MB": expected bytes`},
		{"version: 1\nlimits: {max_frame_bytes: 9999999TiB}\n", `expected bytes as a whole number`},
		{"version: 1\nlimits: {max_frame_bytes: 2GiB}\n", `limits.max_frame_bytes is 2GiB: expected at most 1GiB`},
		{"version: 1\nlimits: {outbox_bytes: 65535}\n", `limits.outbox_bytes is 65535: expected at least 64KiB`},
		{"version: 1\nlimits: {return_bytes: 999}\n", `limits.return_bytes is 999: expected at least 1000B`},
		{"version: 1\nlimits: {concurrent_calls: 0}\n", `limits.concurrent_calls is 0: expected at least 1`},
		{"version: 1\nsandbox: {profile: danger-full-access}\n", `write i_understand_full_access: true`},
		{"version: 1\nsandbox: {network: some}\n", `sandbox.network cannot be "some": expected off, proxy or full`},
		{"version: 1\nsandbox: {i_understand_full_access: yes}\n", `cannot be "yes": expected true or false`},
		{"version: 1\nsandbox: {write: [~/none]}\n", `sandbox.write[0]: cannot find`},
		{"version: 1\nsandbox: {write: [/]}\n", `sandbox.write[0] cannot be /`},
		{"version: 1\nsandbox: {write: ['~/']}\n", `it holds your home`},
		{"version: 1\nsandbox: {hide: [..]}\n", ``},
		{"version: 1\nsandbox: {hide: [\"svc/*.pem\"]}\n", `:2:18: sandbox.hide takes no wildcards`},
		{"version: 1\nsandbox: {hide: [\"/w/{a,b}\"]}\n", `sandbox.hide takes no wildcards`},
		{"version: 1\nsandbox: {hide: [" + m.project + "]}\n", "which is hidden from calls"},
		{"version: 1\nsandbox: {hide: [/]}\n", "sandbox.hide cannot be /: it has "},
		{"version: 1\nsandbox: {egress: {allow: [\"*.*.example\"]}}\n", `sandbox.egress.allow[0] cannot be "*.*.example"`},
		{"version: 1\nsandbox: {egress: {allow: [pypi.org.]}}\n", `sandbox.egress.allow[0] cannot be "pypi.org."`},
		{"version: 1\nsandbox: {egress: {allow: [\"a:0\"]}}\n", `"0" is no port`},
		{"version: 1\nsandbox: {egress: {private: [10.0.0.0/33]}}\n", `sandbox.egress.private[0] cannot be "10.0.0.0/33"`},
		{"version: 1\ntelemetry: {otlp_endpoint: http://collector.example:4318}\n", `telemetry.otlp_endpoint is on another machine: use https`},
		{"version: 1\ntelemetry: {otlp_endpoint: 127.0.0.1:4318}\n", `telemetry.otlp_endpoint cannot be "127.0.0.1:4318": expected a URL`},
		{"version: 1\ntelemetry: {otlp_endpoint: \"http://127.0.0.1:4318/?a=b\"}\n", `expected a URL without a query and a password`},
		{"version: 1\ntelemetry: {otlp_endpoint: https://me:secret@collector.example}\n", `expected a URL without a query and a password`},
		{"version: 1\nsandbox: {egress: {ports: [80, 080]}}\n", `sandbox.egress.ports[1] cannot be "080"`},
		{"version: 1\nsandbox: {egress: {ports: [80, 80]}}\n", `sandbox.egress.ports[1] cannot be "80"`},
		{"version: 1\nsandbox: {network: proxy, egress: {sni_check: no}}\n", `sandbox.egress.sni_check cannot be "no": expected true or false`},
		{"version: 1\nsandbox: {caches: [/]}\n", `sandbox.caches[0] cannot be /: it holds your home`},
		{"version: 1\nsandbox: {caches: [/usr/lib]}\n", `it belongs to the system`},
		{"version: 1\nworkspace: /\n", `:2:12: the workspace cannot be /`},
		{"version: 1\nworkspace: /none\n", `the workspace must be an existing folder: cannot find /none`},
		{"version: 1\nworkspace: /etc/passwd\n", `/etc/passwd is not a folder`},
		{"version: 1\nworkspace: ''\n", `a path is empty`},
		{"version: 1\npolicy: none.yaml\n", `policy: cannot find`},
		{"version: 1\ntokens: [{name: ../x, roles: [agent]}]\n", `tokens[0].name cannot be "../x"`},
		{"version: 1\ntokens: [{name: a, roles: [agent]}, {name: a, roles: [agent]}]\n", `tokens[1].name "a" is there twice`},
		{"version: 1\ntokens: [{name: a}]\n", `tokens[0].roles is empty`},
		{"version: 1\ntokens: [{name: a, roles: [agnet]}]\n", `did you mean "agent"?`},
		{"version: 1\nallowed_origins: ['*']\n", `allowed_origins[0] cannot be "*"`},
		{"version: 1\nallowed_origins: ['null']\n", `allowed_origins[0] cannot be "null"`},
		{"version: 1\nallowed_hosts: ['http://a']\n", `allowed_hosts[0] cannot be "http://a"`},
		{"version: 1\nenv: {pass: ['*']}\n", `env.pass[0] cannot be "*"`},
		{"version: 1\nenv: {set: {GIT_DIR: x}}\n", "toold.yaml:2:22: env.set.GIT_DIR: GIT_DIR cannot be given to commands"},
		{"version: 1\nenv: {set: {LD_PRELOAD: /x}}\n", "toold.yaml:2:25: env.set.LD_PRELOAD: LD_PRELOAD cannot"},
		{"version: 1\nenv: {set: {TOOLD_CALL: x}}\n", "toold.yaml:2:25: env.set.TOOLD_CALL: TOOLD_CALL cannot"},
		{"version: 1\nenv: {pass: [CI, AWS_SECRET_ACCESS_KEY]}\n", "toold.yaml:2:18: env.pass[1]: AWS_SECRET_ACCESS_KEY cannot"},
		{"version: 1\nenv: {pass: ['LD_*']}\n", "toold.yaml:2:14: env.pass[0]: LD_* cannot"},
		{"version: 1\nenv: {pass: [TOOLD_TOKEN]}\n", "toold.yaml:2:14: env.pass[0]: TOOLD_TOKEN cannot"},
		{"version: 1\nenv: {set: {'A=B': x}}\n", `env.set.A=B is not the name of a variable`},
		{"version: 1\nredact: [abc]\n", `redact[0] has fewer than 4 bytes`},
		{"version: 1\nredact: ['  ']\n", `redact[0] is empty`},
	} {
		_, err := m.loadText(t, c.src)
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", c.src, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v\nwant %s", c.src, err, c.want)
		}
	}
}

func TestJSONIsReadToo(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	got, err := m.loadText(t, `{"version":1,"approval":{"timeout":"3s"},"redact":["s3cret"],"env":{"set":{"A":"b"}}}`)
	if err != nil || got.ApprovalTime != 3*time.Second || got.Redact[0] != "s3cret" || got.Env.Set["A"] != "b" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	_, err := m.loadText(t, "version: 1\nterminal: x\nlimits:\n  ping: y\n")
	var fault *Error
	if !errors.As(err, &fault) || fault.Line != 2 || !strings.Contains(err.Error(), "terminal cannot be") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(err.Error(), "    4 |   ping: y\n      |         ^") {
		t.Errorf("no excerpt in %v", err)
	}
}

func TestFaultsOutsideTheFileNameTheirOrigin(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.env["TOOLD_LISTEN"] = "nonsense"
	o := m.options()
	o.LogLevel = "loud"
	_, err := Load(o)
	if err == nil || !strings.Contains(err.Error(), "TOOLD_LISTEN: listen cannot be") ||
		!strings.Contains(err.Error(), "--log-level: log.level cannot be") {
		t.Errorf("got %v", err)
	}
}

func TestTheStateDirectoryStaysOutOfReachOfCalls(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	link := filepath.Join(m.home, "link")
	must.Do(t, os.Symlink(m.project, link))
	for _, dir := range []string{m.project, filepath.Join(m.project, "a/b"), filepath.Join(link, "a")} {
		o := m.options()
		o.StateDir = dir
		if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "--state-dir: the state directory") {
			t.Errorf("state in %s: %v", dir, err)
		}
	}
	o := m.options()
	o.Workspace = m.home
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "lies inside") {
		t.Errorf("the home as the workspace: %v", err)
	}
	o.StateDir = filepath.Join(m.home, "../state")
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "configuration folder") {
		t.Errorf("the home as the workspace, with the state elsewhere: %v", err)
	}
	m.env["XDG_CONFIG_HOME"] = filepath.Join(m.home, "../etc")
	got, err := Load(o)
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "holds your home") {
		t.Errorf("the home as the workspace with the state elsewhere: %v, warnings %q", err, got.Warnings)
	}
}

func TestTheWorkspaceIsCanonical(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	must.Do(t, os.Symlink(m.project, filepath.Join(m.home, "link")))
	o := m.options()
	o.Workspace = "../home/link/."
	got, err := Load(o)
	if err != nil || got.Workspace != m.project || got.Sandbox.Workspace != m.project {
		t.Errorf("got %q, %v", got.Workspace, err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(example())
	f.Add("version: 1\nlimits: {spool_bytes: 99999999999GiB, ping: -1s}\nworkspace: \"\\0\"\n")
	f.Fuzz(func(t *testing.T, src string) {
		l, err := newLoader(Options{Dir: "/nowhere", Getenv: func(name string) string { return map[string]string{"HOME": "/nowhere"}[name] }})
		if err == nil && l.decode("/nowhere/f.yaml", []byte(src)) == nil {
			l.build()
		}
	})
}
