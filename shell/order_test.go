package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// kept denies writing below two directories and to one file, and allows everything else.
func kept() policy.File {
	f := policy.File{Name: "kept.yaml", Defaults: permissive()}
	f.Defaults.UnknownRead, f.Defaults.UnknownWrite = policy.Allow, policy.Ask
	f.Paths = []policy.Rule{{ID: "kept", Action: policy.Deny, Ops: []policy.Kind{policy.Write}, Paths: []string{"${workspace}/generated/**", "${workspace}/fresh/**", "${workspace}/release.tar"}}}
	return f
}

// ordered returns all orders of the parts of a command, with its program first.
func ordered(program string, parts []string) (scripts []string) {
	if len(parts) == 0 {
		return []string{program}
	}
	for i, part := range parts {
		rest := slices.Concat(parts[:i:i], parts[i+1:])
		scripts = append(scripts, ordered(program+" "+part, rest)...)
	}
	return scripts
}

func TestTheOrderOfFlagsHidesNoWrite(t *testing.T) {
	t.Parallel()
	decide := judge(t, kept())
	for command, want := range map[string]policy.Action{
		"tar|-x|-f x.tar|-C generated": policy.Deny, "tar|-r|-f release.tar|a.txt": policy.Deny, "tar|--extr|-f x.tar|--dir generated": policy.Deny,
		"tar|-xf x.tar|--one-top-level=fresh": policy.Deny, "tar|-xf x.tar|--one-t=fresh": policy.Deny, "tar|-f release.tar|--appe|a.txt": policy.Deny, "tar|-A|-f release.tar|b.tar": policy.Deny, "tar|--delete|-f release.tar|a": policy.Deny,
		"tar|-cf a.tar|-g release.tar|a.txt": policy.Deny, "tar|-cf a.tar|--volno-file release.tar|a.txt": policy.Deny, "tar|-tf a.tar|--index-file release.tar": policy.Deny, "tar|-tf a.tar|--index-file=release.tar": policy.Deny,
		"tar|-C .git/hooks|-xf x.tar": policy.Deny, "tar|-x|-f x.tar|-C src": policy.Allow, "tar|-t|-f release.tar": policy.Allow, "tar|-t|-f release.tar|-C generated": policy.Allow, "tar|-tf x.tar|--frobnicate=release.tar": policy.Deny,
		"bsdtar|-x|-f x.tar|-C generated": policy.Deny, "gtar|-x|-f x.tar|-C generated": policy.Deny, "pax|-r|-f x.tar|-s ,^,generated/,": policy.Ask, "pax|-w|-f release.tar|a.txt": policy.Deny, "cpio|-id|-D generated": policy.Deny,
		"7z x|-ogenerated|a.7z": policy.Deny, "unzip|-d generated|x.zip": policy.Deny, "unzip|-dgenerated|x.zip": policy.Deny, "ar|-r|release.tar|a.o": policy.Deny, "git -C generated|init": policy.Deny, "git init|-q|-b main": policy.Allow,
	} {
		program, parts, _ := strings.Cut(command, "|")
		for _, script := range ordered(program, strings.Split(parts, "|")) {
			if d := decide(script); d.Action != want {
				t.Errorf("%s: %v by %s, want %v", script, d.Action, d.Rule, want)
			}
		}
	}
}
