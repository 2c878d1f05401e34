package config

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
)

func TestTierCHasToBeAskedFor(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for text, want := range map[string]sandbox.Tier{
		"":                                  sandbox.TierB,
		"sandbox: {allow_degraded: none}":   sandbox.TierA,
		"sandbox: {allow_degraded: tier-b}": sandbox.TierB,
		"sandbox: {allow_degraded: tier-c}": sandbox.TierC,
	} {
		if got, err := m.loadText(t, "version: 1\n"+text+"\n"); err != nil || got.Lowest != want {
			t.Errorf("%q: the lowest tier is %v, %v", text, got.Lowest, err)
		}
	}
}

func TestLaunchersHaveNames(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for text, want := range map[string]string{
		"":                             "auto",
		"sandbox: {launcher: native}":  "native",
		"sandbox: {launcher: bwrap}":   "bwrap",
		"sandbox: {launcher: /my/one}": "",
	} {
		got, err := m.loadText(t, "version: 1\n"+text+"\n")
		if want == "" && (err == nil || !strings.Contains(err.Error(), "sandbox.launcher")) || want != "" && (err != nil || got.Sandbox.Launcher != want) {
			t.Errorf("%q: the launcher is %q, %v", text, got.Sandbox.Launcher, err)
		}
	}
}

func TestFoldersToReadAreNamed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, filepath.Join(m.home, "go", "file"), "")
	m.write(t, filepath.Join(m.home, ".gitconfig"), "")
	got, err := m.loadText(t, "version: 1\n")
	if diff := cmp.Diff([]string{filepath.Join(m.home, ".gitconfig")}, got.Sandbox.Read); err != nil || diff != "" {
		t.Error(err, diff)
	}
	got = must.Get(m.loadText(t, "version: 1\nsandbox: {read: [~/go, ~/none]}\n"))(t)
	must.Match(t, []string{filepath.Join(m.home, "go")}, got.Sandbox.Read)
	if !strings.Contains(strings.Join(got.Warnings, "\n"), "none does not exist") {
		t.Errorf("no word about the missing one: %q", got.Warnings)
	}
	if _, err := m.loadText(t, "version: 1\nsandbox: {read: [/]}\n"); err == nil || !strings.Contains(err.Error(), "cannot be /") {
		t.Errorf("got %v", err)
	}
}

func TestSocketsThatCallsMayReachAreNamed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, name := range []string{"agent.sock", "own.sock"} {
		l := must.Get(net.Listen("unix", filepath.Join(m.home, name)))(t)
		t.Cleanup(func() { l.Close() })
	}
	got := must.Get(m.loadText(t, "version: 1\nsandbox: {unix_sockets: [~/agent.sock, ~/agent.sock, ~/none.sock]}\n"))(t)
	want := []string{filepath.Join(m.home, "agent.sock"), filepath.Join(m.home, "none.sock")}
	must.Match(t, want, got.Sandbox.Sockets)
	if !strings.Contains(strings.Join(got.Warnings, "\n"), "none.sock does not exist") {
		t.Errorf("no word about the missing one: %q", got.Warnings)
	}
	m.write(t, filepath.Join(m.home, "file"), "")
	for text, want := range map[string]string{
		"sandbox: {unix_sockets: [~/file]}":                         "is no socket",
		"sandbox: {unix_sockets: [~/own.sock]}\nsocket: ~/own.sock": "toold itself",
	} {
		if _, err := m.loadText(t, "version: 1\n"+text+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestApproversMayAddWhatIsNamedAndNothingElse(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	data := filepath.Join(filepath.Dir(m.home), "data")
	must.Do(t, os.Mkdir(data, 0o700))
	protect := policy.Autorun()
	for text, want := range map[string]escalation.Limits{
		"":                      {Ports: []uint16{80, 443}, Protect: protect},
		"approval: {widen: {}}": {Ports: []uint16{80, 443}, Protect: protect},
		"approval: {widen: {profile: none, network: off}}":        {Ports: []uint16{80, 443}, Protect: protect},
		"approval: {widen: {network: full}}":                      {Network: escalation.Full, Ports: []uint16{80, 443}, Protect: protect},
		"approval: {widen: {hosts: [pypi.org, '*.x.org:443']}}":   {Hosts: []string{"pypi.org", "*.x.org:443"}, Ports: []uint16{80, 443}, Protect: protect},
		"approval: {widen: {write: [" + data + "]}}":              {Write: []string{data}, Ports: []uint16{80, 443}, Protect: protect},
		"approval: {widen: {profile: workspace-write}}":           {Mode: sandbox.WorkspaceWrite, Ports: []uint16{80, 443}, Protect: protect},
		"sandbox: {protect: [.envrc], egress: {ports: [8080]}}\n": {Ports: []uint16{8080}, Protect: []string{".envrc"}},
		"approval: {widen: {profile: danger-full-access}}\nsandbox: {i_understand_full_access: true}": {
			Mode: sandbox.FullAccess, Ports: []uint16{80, 443}, Protect: protect,
		},
	} {
		got, err := m.loadText(t, "version: 1\n"+text+"\n")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		// The order of what is protected has no meaning.
		if len(got.Escalation.Protect) != len(want.Protect) {
			t.Errorf("%s: protected are %q", text, got.Escalation.Protect)
		}
		want.Protect = got.Escalation.Protect
		if diff := cmp.Diff(want, got.Escalation); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestWhatApproversMustNotAddIsRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	must.Do(t, os.MkdirAll(filepath.Join(m.home, ".ssh", "sub"), 0o700))
	for text, want := range map[string]string{
		"{profile: danger-full-access}": "i_understand_full_access: true under sandbox",
		"{profile: read-only}":          "expected none, workspace-write or danger-full-access",
		"{network: on}":                 "expected off, proxy or full",
		"{hosts: ['*']}":                "approval.widen.hosts[0]",
		"{hosts: ['https://x.org']}":    "approval.widen.hosts[0]",
		"{write: [/nowhere/at/all]}":    "approval.widen.write[0]: cannot find",
		"{write: [/]}":                  "it holds your home",
		"{write: ['~']}":                "it holds your home",
		"{write: [~/.ssh]}":             "calls have no access to",
		"{write: [~/.ssh/sub]}":         "calls have no access to",
		"{write: [/proc]}":              "calls have no access to /proc",
		"{write: [/dev/shm]}":           "calls have no access to /dev",
		"{write: [~/etc]}":              "which calls may write", // the configuration lies there
		"{hots: [x.org]}":               "hosts",
	} {
		_, err := m.loadText(t, "version: 1\napproval: {widen: "+text+"}\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "toold.yaml:2:") && text != "{write: [~/etc]}" {
			t.Errorf("%s: the place is missing: %v", text, err)
		}
	}
}

// What a person may open has use for what is said about hosts.
func TestEgressHasAMeaningWhereAPersonMayOpenTheNetwork(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for text, warns := range map[string]bool{
		"": true, "approval: {widen: {network: proxy}}": false, "approval: {widen: {hosts: [x.org]}}": false,
	} {
		got := must.Get(m.loadText(t, "version: 1\nsandbox: {egress: {allow: [pypi.org]}}\n"+text+"\n"))(t)
		if told := strings.Contains(strings.Join(got.Warnings, "\n"), "sandbox.egress has no effect"); told != warns {
			t.Errorf("%q: warned %v", text, told)
		}
	}
}
