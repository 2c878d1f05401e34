package bash

import (
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/sandbox"
)

func TestTheDescriptionSaysHowScriptsRun(t *testing.T) {
	t.Parallel()
	usual := func(change func(*Options)) Options {
		o := Options{
			Workspace: "/home/me/project", Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: "/home/me/project"},
			DefaultTimeout: 90 * time.Second, MaxTimeout: 10 * time.Minute, MaxBackground: 2 * time.Hour, ReturnBytes: 12345, Background: true,
		}
		change(&o)
		return o
	}
	for _, tc := range []struct {
		name      string
		o         Options
		says, not []string
	}{
		{
			"usual", usual(func(*Options) {}),
			[]string{"runs in /home/me/project ", "cd, variables", "off. Nothing can be downloaded, and no argument opens it", "sandbox.network in", "stopped after 1m30s", "up to 10m.", "12345 bytes", "background: true", "at most 2h:", "bash_output", "bash_kill", "list_calls", "reach its servers at localhost", "wait for a person", "/tmp is private"},
			nil,
		},
		{"proxy", usual(func(o *Options) { o.Profile.Ports = []uint16{443} }), []string{"hosts that the policy allows"}, []string{"Network: off"}},
		{"open", usual(func(o *Options) { o.Profile.Network = true }), []string{"Network: open."}, []string{"Network: off", "reach its servers"}},
		{"more to write", usual(func(o *Options) { o.Profile.Write = []string{"/srv/a", "/srv/b"} }), []string{"workspace and in /srv/a, /srv/b and nowhere else"}, nil},
		{"read only", usual(func(o *Options) { o.Profile.Mode = sandbox.ReadOnly }), []string{"it cannot change any"}, []string{"/tmp is private"}},
		{"unconfined", usual(func(o *Options) { o.Profile.Mode = sandbox.FullAccess; o.Profile.Network = true }), []string{"nothing confines it"}, []string{"nowhere else"}},
		{"tier C", usual(func(o *Options) { o.Profile.Tier = sandbox.TierC }), []string{"read and write the workspace"}, []string{"/tmp is private", "reach its servers"}},
		{"no background", usual(func(o *Options) { o.Background = false }), []string{"nothing continues after the return"}, []string{"background: true"}},
	} {
		text := New(tc.o).Definition().Description
		for _, words := range tc.says {
			if !strings.Contains(text, words) {
				t.Errorf("%s: it does not say %q:\n%s", tc.name, words, text)
			}
		}
		for _, words := range tc.not {
			if strings.Contains(text, words) {
				t.Errorf("%s: it says %q:\n%s", tc.name, words, text)
			}
		}
		if n := strings.Count(text, "\n") + 1; n > 15 {
			t.Errorf("%s: it has %d lines", tc.name, n)
		}
	}
}
