package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// operands renders what Describe says of a command: "net x", "read+ x", and what
// may be a path of an unknown one as "? x".
func operands(command string) (out []string) {
	u := describe(words(command))
	for _, o := range u.Operands {
		s := o.Kind.String()
		if o.Tree {
			s += "+"
		}
		if o.Tree && o.Part != "" {
			s += "(" + o.Part + ")"
		}
		text := o.Word.Text
		if o.Word.Dynamic {
			text += "…"
		}
		out = append(out, s+" "+text)
	}
	if !u.Known {
		for _, w := range suspects(words(command)) {
			out = append(out, "? "+w.Text)
		}
	}
	return out
}

func TestURLsOfProgramsThatMayConnectAreHosts(t *testing.T) {
	t.Parallel()
	for command, want := range cases(t, "hosts.txt") {
		if got := strings.Join(only(operands(command), "net", "read /etc"), "; "); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func only(list []string, kinds ...string) (out []string) {
	for _, s := range list {
		for _, kind := range kinds {
			if strings.HasPrefix(s, kind) {
				out = append(out, s)
			}
		}
	}
	return out
}

func TestURLsThatAreTextAreNoHosts(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{
		{"git", "commit", "-m", "see https://example.org"},
		{"git", "commit", "-m", "https://example.org"},
		{"git", "tag", "-m", "https://example.org", "v1"},
		{"git", "log", "--grep=https://example.org"},
		{"git", "grep", "https://example.org"},
		{"echo", "https://example.org"},
		{"printf", "%s", "https://example.org"},
		{"grep", "-rn", "https://example.org", "."},
		{"rg", "https://"},
		{"sed", "-i", "s|http://a|https://b|", "x"},
		{"jq", "-n", "--arg", "u", "https://example.org", "$u"},
		{"test", "$U", "=", "https://example.org"},
		{"gh", "pr", "create", "--body", "Closes https://example.org/1"},
		{"npm", "version", "-m", "see https://example.org", "patch"},
		{"npm", "i", "lodash@npm:lodash-es"},
		{"npm", "i", "@scope/x@1.2.3"},
		{"cargo", "test", "a::b"},
		{"pytest", "a.py::TestX::test_y"},
		{"go", "test", "-run", "TestA/b:c", "./..."},
		{"docker", "run", "-p", "8080:80", "nginx:1"},
		{"rsync", "-a", "a/", "b/"},
	} {
		var w []Word
		for _, text := range argv {
			w = append(w, Word{Text: text})
		}
		for _, o := range describe(w).Operands {
			if o.Kind == Net {
				t.Errorf("%q: contacts %q", argv, o.Word.Text)
			}
		}
	}
}

func TestSubcommandsAreNoPaths(t *testing.T) {
	t.Parallel()
	for command, want := range cases(t, "paths.txt") {
		got := only(operands(command), "read", "?")
		want := strings.FieldsFunc(want, func(r rune) bool { return r == ';' })
		for i := range want {
			want[i] = strings.TrimSpace(want[i])
		}
		if diff := cmp.Diff(strings.Join(want, "; "), strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}
