package launch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

// expression is one rule of a profile: its words, and what stands in parentheses.
type expression []any

// readBelt reads a profile as sandbox-exec does: lists of words and strings.
func readBelt(t *testing.T, text string) []expression {
	t.Helper()
	open := []expression{{}}
	for text != "" {
		switch {
		case strings.ContainsRune(" \n", rune(text[0])):
			text = text[1:]
		case text[0] == '(':
			open, text = append(open, expression{}), text[1:]
		case text[0] == ')':
			last := len(open) - 1
			if last == 0 {
				t.Fatalf("a list is closed that was not opened, before %.60q", text)
			}
			open[last-1] = append(open[last-1], open[last])
			open, text = open[:last], text[1:]
		case text[0] == '"' || strings.HasPrefix(text, `#"`):
			start := strings.IndexByte(text, '"') + 1
			end := strings.IndexByte(text[start:], '"')
			if end < 0 || strings.ContainsRune(text[start:start+end], '\\') {
				t.Fatalf("a string does not end, or has an escape, at %.60q", text)
			}
			open[len(open)-1] = append(open[len(open)-1], text[start:start+end])
			text = text[start+end+1:]
		default:
			end := strings.IndexAny(text, " \n()\"")
			if end <= 0 {
				t.Fatalf("a word does not end at %.60q", text)
			}
			open[len(open)-1] = append(open[len(open)-1], text[:end])
			text = text[end:]
		}
	}
	if len(open) != 1 {
		t.Fatalf("%d lists are not closed", len(open)-1)
	}
	var rules []expression
	for _, rule := range open[0] {
		rules = append(rules, rule.(expression))
	}
	return rules
}

func beltProfile() sandbox.Profile {
	return sandbox.Profile{
		Mode: sandbox.WorkspaceWrite, Workspace: "/Users/ann/My work", Write: []string{"/opt/data"},
		Hide: []string{"/Users/ann/.ssh"}, Protect: []string{"/Users/ann/My work/.vscode"},
		Names: []string{".envrc", ".git/hooks", ".git"}, Sockets: []string{"/private/tmp/agent"},
	}
}

func TestTheSeatbeltProfileIsThatOfItsConfiguration(t *testing.T) {
	t.Parallel()
	p := beltProfile()
	p.Network = true
	text, parameters, err := seatbelt(p, "/private/var/folders/call")
	if err != nil {
		t.Fatal(err)
	}
	want := must.Get(os.ReadFile(filepath.Join("testdata", "seatbelt.sb")))(t)
	got := text + "; parameters\n; " + strings.Join(parameters, "\n; ") + "\n"
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the profile is another (-want +got):\n%s", diff)
	}
	readBelt(t, text)
}

// TestTheSeatbeltOpensNoMoreThanTheProfile holds what every profile has in common.
func TestTheSeatbeltOpensNoMoreThanTheProfile(t *testing.T) {
	t.Parallel()
	readOnly := sandbox.Profile{Mode: sandbox.ReadOnly, Workspace: "/w", Hide: []string{"/h"}}
	text, _, err := seatbelt(readOnly, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range readBelt(t, text) {
		if rule[0] != "allow" {
			continue
		}
		for _, what := range rule[1:] {
			name, isName := what.(string)
			if isName && (strings.HasPrefix(name, "network") || name == "system-socket" || name == "default") {
				t.Errorf("%v opens the network or everything", rule)
			}
			if name == "file-write*" && !slices.ContainsFunc(rule, func(x any) bool { return mentions(x, "/dev/") }) {
				t.Errorf("%v makes something writable", rule)
			}
		}
	}
	for name, refused := range map[string]sandbox.Profile{
		"everything is allowed": {Mode: sandbox.FullAccess},
		"a relative root":       {Mode: sandbox.WorkspaceWrite, Workspace: "w"},
		"names are looked up":   {Mode: sandbox.ReadOnly, Ports: []uint16{443}},
	} {
		if text, _, err := seatbelt(refused, ""); err == nil {
			t.Errorf("%s: there is a profile: %.80s", name, text)
		}
	}
}

func mentions(x any, part string) bool {
	switch x := x.(type) {
	case string:
		return strings.Contains(x, part)
	case expression:
		return slices.ContainsFunc(x, func(y any) bool { return mentions(y, part) })
	}
	return false
}

// TestSeatbeltPatternsMatchProtectedNames tries the patterns on paths, by rules that
// deny: the last rule that matches counts, and these come after what allows.
func TestSeatbeltPatternsMatchProtectedNames(t *testing.T) {
	t.Parallel()
	text, _, err := seatbelt(beltProfile(), "")
	if err != nil {
		t.Fatal(err)
	}
	denied := func(path string) bool {
		for _, rule := range readBelt(t, text) {
			filter, ok := rule[len(rule)-1].(expression)
			if ok && rule[0] == "deny" && (rule[1] == "file-write*" || rule[1] == "file-write-create") && filter[0] == "regex" && regexp.MustCompile(filter[1].(string)).MatchString(path) {
				return true
			}
		}
		return false
	}
	for path, want := range map[string]bool{
		"/Users/ann/My work/.envrc":                          true,
		"/Users/ann/My work/a/b/.ENVRC":                      true,
		"/Users/ann/My work/.git/hooks":                      true,
		"/Users/ann/My work/.git/hooks/pre-commit":           true,
		"/Users/ann/My work/sub/.Git/Hooks/x":                true,
		"/Users/ann/My work/.git/modules/m/hooks/post-merge": true,
		"/opt/data/r/.git/worktrees/w/hooks/x":               true,
		"/Users/ann/My work/a/.git":                          true,
		"/Users/ann/My work/.git/modules/new":                true,
		"/Users/ann/My work/.git/modules/m/objects/aa":       false,
		"/Users/ann/My work/.envrc.example":                  false,
		"/Users/ann/My work/my.envrc":                        false,
		"/Users/ann/My work/legit/hooks/x":                   false,
		"/Users/ann/My work/.git/objects/aa":                 false,
		"/Users/ann/other/.envrc":                            false,
		"/Users/ann/My work/.github/hooks":                   false,
		"/Users/ann/My work/src/hooks/pre-commit":            false,
		"/elsewhere/Users/ann/My work/.git/hooks/pre-commit": false,
	} {
		if got := denied(path); got != want {
			t.Errorf("%s: denied is %v, want %v", path, got, want)
		}
	}
}

// FuzzSeatbelt: no path can become a rule, or a pattern of another shape.
func FuzzSeatbelt(f *testing.F) {
	f.Add("/w", "/h", ".envrc", "/s")
	f.Add(`/w" (literal "/`, "/h)\n(allow default)", `.x"#`, `/s\`)
	f.Add("/(.*)|[a", "/é\x80", ".git/[hooks", "/$^")
	f.Fuzz(func(t *testing.T, root, hide, name, socket string) {
		p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: root, Hide: []string{hide}, Names: []string{name}, Sockets: []string{socket}}
		text, parameters, err := seatbelt(p, "/private/var/folders/call")
		if err != nil {
			return
		}
		got := readBelt(t, text)
		if strings.Contains(name, "/") { // which has rules of its own for each folder
			return
		}
		plain := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: "/w", Hide: []string{"/h"}, Names: []string{".x"}, Sockets: []string{"/s"}}
		if name == ".git" {
			plain.Names = []string{".git"}
		}
		want, _, err := seatbelt(plain, "/t")
		if err != nil {
			t.Fatal(err)
		}
		expected := readBelt(t, want)
		if len(got) != len(expected) || len(parameters) != 4 {
			t.Fatalf("%d rules and %d parameters, want %d and 4:\n%s", len(got), len(parameters), len(expected), text)
		}
		for i := range got {
			if len(got[i]) != len(expected[i]) || got[i][0] != expected[i][0] || got[i][1] != expected[i][1] {
				t.Errorf("the rule %v has the shape of another, want %v", got[i], expected[i])
			}
		}
		for _, pattern := range []string{beltPattern(root), beltName(name)} {
			if re, err := regexp.Compile("^" + pattern + "$"); err != nil {
				t.Errorf("%q is no pattern: %v", pattern, err)
			} else if plainText(root+name) && !re.MatchString(root) && !re.MatchString(name) {
				t.Errorf("%q matches neither %q nor %q", pattern, root, name)
			}
		}
	})
}

// plainText: "." of a pattern matches no newline here.
func plainText(s string) bool { return !strings.ContainsRune(s, '\n') }
