package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// Whoever may write one of these could bind the daemon as it likes.
func TestNothingOfTheDaemonMayLieWhereCallsWrite(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	shared := filepath.Join(m.home, "shared")
	must.Do(t, errors.Join(os.Mkdir(shared, 0o700), os.Symlink(m.project, filepath.Join(m.home, "way")), os.Symlink(filepath.Join(m.home, "real.yaml"), filepath.Join(m.project, "link.yaml"))))
	for _, dir := range []string{m.project, shared, m.home} {
		m.write(t, filepath.Join(dir, "real.yaml"), "version: 1\n")
		m.write(t, filepath.Join(dir, "key.pem"), "x")
	}
	m.write(t, filepath.Join(m.home, "clients.yaml"), "version: 1\nclients:\n  - match: {client: a}\n    policy: "+m.project+"/real.yaml\n")
	for name, setting := range map[string]string{
		"the state directory": "state_dir: " + shared + "/state", "the policy": "policy: ~/shared/real.yaml", "the socket": "socket: ~/way/s",
		"the key of": "tls: {key: ~/way/key.pem, cert: ~/key.pem}", "the TLS certificate": "tls: {key: ~/key.pem, cert: ~/way/key.pem}",
	} {
		_, err := m.loadText(t, "version: 1\nsandbox: {write: [~/shared]}\n"+setting+"\n")
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "which calls may write") {
			t.Errorf("%s: %v", setting, err)
		}
	}
	for _, path := range []string{filepath.Join(m.project, "real.yaml"), filepath.Join(m.home, "way/real.yaml"), filepath.Join(m.project, "link.yaml")} {
		o := m.options()
		o.Path = path
		if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "the configuration") {
			t.Errorf("a configuration at %s: %v", path, err)
		}
		o.Path, o.Policy = "", path
		if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "the policy") {
			t.Errorf("a policy at %s: %v", path, err)
		}
	}
	o := m.options()
	o.Policy = filepath.Join(m.home, "clients.yaml")
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "the policy "+m.project) {
		t.Errorf("the policy of a client in the workspace: %v", err)
	}
}

func TestAMountShowsWhatLiesElsewhere(t *testing.T) {
	t.Parallel()
	mounts := parseMounts(`21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 0:25 / /sys rw - sysfs sysfs rw
31 21 254:0 /home/u/.local /work/with\040blank/cache rw - ext4 /dev/vda rw
32 21 254:0 /data/w /mnt/w rw - ext4 /dev/vda rw
33 21 254:0 /home/u/.local/state/toold/spool /srv/out/spool rw - ext4 /dev/vda rw
34 21 9:1 /sub /other rw - btrfs /dev/sda rw
`)
	const state = "/home/u/.local/state/toold"
	for root, want := range map[string]map[string]bool{
		"/work/with blank": {state: true, "/home/u/.config": false},
		"/work":            {state: true},
		"/mnt/w":           {state: false, "/data/w/state": true, "/data": false},
		"/srv/out":         {state + "/spool/1": true, state + "/journal": false},
		"/other":           {state: false},
	} {
		for path, shown := range want {
			if got := visibleThrough(mounts, root, path); got != shown {
				t.Errorf("%s seen in %s: %t", path, root, got)
			}
		}
	}
	if !slices.ContainsFunc(readMounts(), func(m mount) bool { return m.at == "/" }) {
		t.Error("this machine has no root")
	}
}

func TestTheDocumentsListTheProtectedNames(t *testing.T) {
	t.Parallel()
	b := must.Get(os.ReadFile("../../docs/policy.md"))(t)
	_, list, _ := strings.Cut(string(b), "## Names that the sandbox protects")
	for _, name := range policy.Autorun() {
		if !strings.Contains(list, "`"+name+"`") {
			t.Errorf("docs/policy.md does not list %s", name)
		}
	}
	_, list, _ = strings.Cut(list, "The names are")
	list, _, _ = strings.Cut(list, "\n\nA ")
	if n := strings.Count(list, "`") / 2; n != len(policy.Autorun()) {
		t.Errorf("docs/policy.md lists %d names, there are %d", n, len(policy.Autorun()))
	}
}

func TestProtectedNames(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	autorun := policy.Autorun()
	slices.Sort(autorun)
	for setting, want := range map[string][]string{
		"{}": autorun, "{protect: []}": {}, `{protect: ["preset:autorun"]}`: autorun,
		"{protect: [.env, .git/hooks, .env]}": {".env", ".git/hooks"},
		"{protect: [.cargo/config.toml]}":     {".cargo/config.toml"},
	} {
		got := must.Get(m.loadText(t, "version: 1\nsandbox: "+setting+"\n"))(t)
		if diff := cmp.Diff(want, got.Protect); diff != "" {
			t.Errorf("%s: %s", setting, diff)
		}
	}
	for _, bad := range []string{"a/b/c", "a/", "../b", "/etc/x", ".git/HEAD", "..", "*.env", "preset:x", ""} {
		if _, err := m.loadText(t, "version: 1\nsandbox: {protect: ['"+bad+"']}\n"); err == nil || !strings.Contains(err.Error(), "sandbox.protect[0]") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	got, err := m.loadText(t, "version: 1\nsandbox: {protect_missing: report}\n")
	if err != nil || !got.ProtectReport {
		t.Errorf("report: %t, %v", got.ProtectReport, err)
	}
}

func TestWhatIsHiddenIsHiddenAtEveryMount(t *testing.T) {
	t.Parallel()
	mounts := parseMounts(`21 1 254:0 / / rw - ext4 /dev/vda rw
22 21 0:5 / /proc rw - proc proc rw
30 21 254:0 /home /mnt/homes rw - ext4 /dev/vda rw
31 21 254:0 / /host rw - ext4 /dev/vda rw
32 21 254:0 /home/ada/.ssh/keys /srv/keys rw - ext4 /dev/vda rw
33 21 254:0 /home/ada /covered rw - ext4 /dev/vda rw
34 21 0:9 / /covered rw - tmpfs tmpfs rw
35 21 254:0 /home/bob /bob rw - ext4 /dev/vda rw
36 21 254:1 /home /other rw - ext4 /dev/vdb rw
`)
	got := otherPaths(mounts, "/home/ada/.ssh")
	slices.Sort(got)
	must.Match(t, []string{"/host/home/ada/.ssh", "/mnt/homes/ada/.ssh", "/srv/keys"}, got)
	if got := otherPaths(mounts, "/proc/1"); len(got) > 0 {
		t.Errorf("a path that is mounted once is also at %q", got)
	}
	if got := otherPaths(nil, "/home/ada/.ssh"); len(got) > 0 {
		t.Errorf("without mounts: %q", got)
	}
}
