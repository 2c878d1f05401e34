package bash_test

import (
	"testing"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
	"github.com/toold/toold/tools/bash"
)

// What mktemp has made in the same script is the call's own, and nothing else is.
func TestWhatMktempMadeIsRemovedUnasked(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	tool := bash.New(bash.Options{Workspace: ws, Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=/tmp"}})
	for script, kept := range map[string]bool{
		`tmp=$(mktemp -d); rm -rf "$tmp"`:                                  true,
		`tmp="$(mktemp -d)" && cd "$tmp" && ls && cd - && rm -rf $tmp`:     true,
		`D=$(mktemp -d -t foo.XXXX); trap 'rm -rf "$D"' EXIT; ls`:          true,
		"f() { local t; t=`mktemp -d`; rm -rf -- \"${t}\"; }; f":           true,
		`tmp=$(mktemp -d /tmp/a.XXXXXX 2>/dev/null) || exit; rm -r "$tmp"`: true,
		`a=$(mktemp -d) b=$(mktemp -d); rm -rf "$a" "$b"`:                  true,
		`tmp=$(mktemp -d); rm -rf "$tmp/../x"`:                             false,
		`tmp=$(mktemp -d); rm -rf "$tmp"/x`:                                false,
		`tmp=$(mktemp -d); rm -rf x"$tmp"`:                                 false,
		`tmp=$(mktemp -d); rm -rf "$tmp" "$x"`:                             false,
		`tmp=$(mktemp -d)/..; rm -rf "$tmp"`:                               false,
		`tmp=$(mktemp -d); tmp=${tmp%/*}; rm -rf "$tmp"`:                   false,
		`tmp=$(mktemp -du); rm -rf "$tmp"`:                                 false,
		`tmp=$(mktemp -d -p "$x"); rm -rf "$tmp"`:                          false,
		`TMPDIR=$PWD; tmp=$(mktemp -d); rm -rf $tmp`:                       false,
		`mktemp() { echo src; }; tmp=$(mktemp -d); rm -rf "$tmp"`:          false,
		`tmp=$(mktemp -d); [ -e x ] && tmp=src; rm -rf "$tmp"`:             false,
		`tmp=$(mktemp -d; echo src); rm -rf $tmp`:                          false,
		`tmp=$(mktemp -d); tmp+=x; rm -rf "$tmp"`:                          false,
		`IFS=t; tmp=$(mktemp -d); rm -rf $tmp`:                             false,
	} {
		found := false
		for _, e := range build(t, tool, script).Effects() {
			if e.Kind == policy.Exec && programs.Parse(e.Argv).Loses != "" {
				found = true
				if e.Kept != kept {
					t.Errorf("%s: kept is %v", script, e.Kept)
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing is removed", script)
		}
	}
}
