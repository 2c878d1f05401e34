package sandbox

import (
	"strings"
	"testing"
)

func TestProfileTellsWhatCallsMaySeeAndChange(t *testing.T) {
	t.Parallel()
	p := Profile{Mode: WorkspaceWrite, Workspace: "/tmp/ws", Write: []string{"/srv/out"}, Hide: []string{"/home/u/.ssh", "/tmp/ws/secret"}}
	readOnly, full := p, p
	readOnly.Mode, full.Mode = ReadOnly, FullAccess
	for _, tc := range []struct {
		path        string
		profile     Profile
		read, write string // part of the refusal; empty = allowed
	}{
		{"/tmp/ws/a", p, "", ""},
		{"/tmp/ws", p, "", ""},
		{"/tmp/ws/.git/config", p, "", ""},
		{"/srv/out/a", p, "", ""},
		{"/srv/output", p, "", "sandbox.write"},
		{"/etc/passwd", p, "", "sandbox.write"},
		{"/", p, "", "sandbox.write"},
		{"/tmp/ws/secret/a", p, "sandbox.hide", "sandbox.hide"},
		{"/tmp/ws/secrets", p, "", ""},
		{"/home/u/.ssh", p, "sandbox.hide", "sandbox.hide"},
		{"/home/u/.sshx", p, "", "sandbox.write"},
		{"/tmp/wsx", p, "a private /tmp", "a private /tmp"},
		{"/tmp/ws/../other", p, "not canonical", "not canonical"},
		{"relative", p, "not canonical", "not canonical"},
		{"", p, "not canonical", "not canonical"},
		{"/proc/self/environ", p, "a private /proc", "a private /proc"},
		{"/dev/zero", p, "a private /dev", "a private /dev"},
		{"/tmp/ws/a", readOnly, "", "sandbox.profile is read-only"},
		{"/tmp/ws/secret", readOnly, "sandbox.hide", "sandbox.hide"},
		{"/etc/passwd", full, "", ""},
		{"/home/u/.ssh/id", full, "", ""},
		{"/etc/../etc", full, "not canonical", "not canonical"},
		{"/tmp/a", Profile{}, "a private /tmp", "a private /tmp"},
		{"/a", Profile{Mode: WorkspaceWrite}, "", "sandbox.write"},
		{"/a", Profile{Mode: WorkspaceWrite, Workspace: "/"}, "", ""},
	} {
		check := func(verb string, err error, want string) {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s %s in %v: %v; want %q", verb, tc.path, tc.profile.Mode, err, want)
			}
		}
		check("read", tc.profile.CanRead(tc.path), tc.read)
		check("write", tc.profile.CanWrite(tc.path), tc.write)
	}
}
