package policy

import "strings"

// Which words of a command may be paths, and which name hosts. Programs that are
// not in the table of knowledge.txt are looked at here: all that is known of them
// is where their subcommand stands.

// subcommandDepth tells how many words may name what a program shall do, when it is
// not one. 9 = all words that look like names: targets, tasks.
var subcommandDepth = map[string]int{
	"make": 9, "gmake": 9, "just": 9, "task": 9, "rake": 9, "gradle": 9, "gradlew": 9, "mvn": 9, "mvnw": 9, "ant": 9, "ninja": 9, "invoke": 9,
	"gh": 2, "kubectl": 2, "aws": 2, "gcloud": 3, "az": 3, "prisma": 2, "nx": 2, "supabase": 2, "firebase": 2, "sequelize": 1,
	"dotnet": 1, "mix": 1, "rails": 1, "bundle": 1, "poetry": 1, "uv": 1, "pipenv": 1, "hatch": 1, "pdm": 1, "conda": 1, "tox": 1, "deno": 1,
	"composer": 1, "flutter": 1, "dart": 1, "swift": 1, "zig": 1, "bazel": 1, "buf": 1, "hugo": 1, "jekyll": 1, "terraform": 1, "tofu": 1, "pulumi": 1,
	"next": 1, "nuxt": 1, "vite": 1, "astro": 1, "ng": 1, "nest": 1, "expo": 1, "turbo": 1, "lerna": 1, "webpack": 1, "storybook": 1, "playwright": 1,
	"cypress": 1, "knex": 1, "typeorm": 1, "drizzle-kit": 1, "changeset": 1, "wrangler": 1, "vercel": 1, "netlify": 1, "serverless": 1, "cdk": 1,
	"vitest": 1, "golangci-lint": 1, "ruff": 1, "systemctl": 1, "service": 2, "alembic": 1, "flask": 1, "brew": 1, "apt": 1, "apt-get": 1, "openssl": 1,
}

// deeper lists subcommands after which the name of a script, a task or another
// subcommand follows.
var deeper = map[string]string{
	"npm": "run run-script rum urn config cache pkg dist-tag access owner org team token profile exec x", "yarn": "run workspace config cache npm", "pnpm": "run run-script config store exec dlx",
	"bun": "run x pm", "docker": "compose container image volume network system buildx context", "podman": "compose container image volume network system",
	"go": "mod tool work", "cargo": "+ run", "terraform": "state workspace", "deno": "task", "composer": "run run-script", "poetry": "run", "uv": "run pip tool", "turbo": "run", "lerna": "run",
}

// subcommandAt returns where the words stand that name what a program shall do:
// the index of the first, and how many there are.
func subcommandAt(argv []Word) (first, count int) {
	name := baseName(argv[0].Text)
	depth := subcommandDepth[name]
	if depth == 0 {
		if globalOptions[name] == "" || name == "npx" {
			return 0, 0
		}
		depth = 1
	}
	rest := subcommands(name, argv[1:])[0]
	first = len(argv) - len(rest)
	for i, w := range rest {
		if i == 1 && isField(deeper[name], rest[0].Text) {
			depth++
		}
		if i >= depth || !isSubcommand(w) {
			break
		}
		count++
	}
	return first, count
}

// isSubcommand reports whether a word looks like a name and like no path.
func isSubcommand(w Word) bool {
	if w.Dynamic || w.Text == "" || w.Text[0] == '-' {
		return false
	}
	for _, r := range w.Text {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != ':' {
			return false
		}
	}
	return true
}

// arguments returns the words after the program but for those that are no paths:
// names of subcommands, modules and packages, and URLs.
func arguments(argv []Word) []Word {
	name := baseName(argv[0].Text)
	first, count := subcommandAt(argv)
	out := make([]Word, 0, len(argv))
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		switch {
		case i >= first && i < first+count || isURL(w.Text):
			continue
		case strings.HasPrefix(name, "python") && w.Text == "-m" && i+1 < len(argv):
			i++ // a module
			continue
		case (name == "npx" || name == "bunx") && w.Text != "" && w.Text[0] != '-' && !w.Dynamic:
			// The package is a program with words of its own.
			return append(out, arguments(unversioned(argv[i:]))...)
		}
		out = append(out, w)
	}
	return out
}

// isURL reports whether a word is a URL, or a flag and one, and no path: it does
// not climb out of a folder that is called "https:".
func isURL(s string) bool {
	return strings.Contains(s, "://") && !strings.Contains(s, "..") && len(urls(s)) > 0
}

// hosts returns the hosts in the words of a program that may connect to them.
func hosts(argv []Word) (out []Operand) {
	if trustedName(argv[0].Text) == "git" {
		return nil // its subcommands that connect are known
	}
	proxy := false
	for _, w := range argv[1:] {
		flag, value, has := strings.Cut(w.Text, "=")
		found := hostWords(w)
		switch {
		case len(found) > 0:
			out = append(out, found...)
		case proxy && (w.Dynamic || w.Text != "" && w.Text[0] != '-'):
			out = append(out, Operand{Word: w, Kind: Net})
		case has && namesHost(flag) && value != "" || w.Dynamic && namesHost(flag):
			out = append(out, Operand{Word: Word{value, w.Dynamic}, Kind: Net})
		}
		proxy = !has && !w.Dynamic && namesHost(w.Text)
	}
	return out
}

// namesHost reports whether the value of a flag is a host without a scheme, or may
// be one.
func namesHost(flag string) bool {
	return isField("--proxy --https-proxy --http-proxy --registry --index-url --extra-index-url --find-links --trusted-host", flag) ||
		strings.HasPrefix(flag, "--@") && strings.HasSuffix(flag, ":registry")
}

// hostWords returns the hosts that a word names by URLs, as user@host:path, or as
// github:owner/name.
func hostWords(w Word) (out []Operand) {
	found := urls(w.Text)
	if len(found) > maxURLs {
		return []Operand{{Word: Word{Dynamic: true}, Kind: Net}}
	}
	for _, u := range found {
		scheme, rest, _ := strings.Cut(u, "://")
		if strings.EqualFold(scheme, "file") && strings.HasPrefix(rest, "/") {
			out = append(out, Operand{Word: Word{rest, w.Dynamic}, Kind: Read})
			continue
		}
		out = append(out, Operand{Word: Word{u, w.Dynamic}, Kind: Net})
	}
	if out != nil || strings.ContainsAny(w.Text, " \t\n") {
		return out
	}
	text := w.Text[strings.LastIndexByte(w.Text, '=')+1:]
	before, _, colon := strings.Cut(text, ":")
	alias := before[strings.LastIndexByte(before, '@')+1:]
	switch host := forges[alias]; {
	case !colon || strings.Contains(before, "/"):
	case host != "":
		out = append(out, Operand{Word: Word{"https://" + host + "/", false}, Kind: Net})
	case isField("http https ftp ftps ws wss git+ssh git+https git+http", before):
		out = append(out, Operand{Word: Word{Dynamic: true}, Kind: Net}) // https:host is one, for some
	case strings.IndexByte(before, '@') > 0 && alias != "" && !isField("npm workspace file link patch portal", alias):
		out = append(out, Operand{Word: Word{text, w.Dynamic}, Kind: Net})
	}
	return out
}

// forges are what package managers call hosts of repositories.
var forges = map[string]string{"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org", "gist": "gist.github.com"}

// maxURLs bounds the URLs that are looked for in one word.
const maxURLs = 16

// urls returns the URLs that a word holds, one more than maxURLs at most. Those in
// the middle of prose are text: "see https://example.org".
func urls(s string) (out []string) {
	at, blank := 0, strings.IndexAny(s, " \t\n")
	for len(out) <= maxURLs {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			return out
		}
		start := at + i
		for start > at && isSchemeByte(s[start-1]) {
			start--
		}
		if start == 0 && len(s) > 2 && s[0] == '-' {
			start = 2 // -ihttps://…
		}
		if start < at+i && (len(out) > 0 || blank < 0 || blank >= start || strings.HasSuffix(s[:start], "@ ")) {
			text, _, _ := strings.Cut(s[start:], " ")
			out = append(out, oneURL(text))
		}
		at += i + len("://")
	}
	return out
}

// oneURL ends a URL before the next one of a list.
func oneURL(s string) string {
	for _, sep := range ",|;\n\t" {
		before, after, _ := strings.Cut(s, string(sep))
		if scheme, _, ok := strings.Cut(after, "://"); ok && scheme != "" && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz+") == "" {
			s = before
		}
	}
	return s
}

// isSchemeByte reports whether a byte may stand in the scheme of a URL.
func isSchemeByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '-'
}
