package programs

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
)

// isURL reports whether a word is a URL and cannot be a path.
func isURL(s string) bool {
	return strings.Contains(s, "://") && !strings.Contains(s, "..") && len(urls(s)) > 0
}

// hosts returns the hosts that words name, except those in code for an interpreter.
func hosts(argv []Word) (out []Operand) {
	if name, _ := System(argv[0].Text); name == "git" {
		return nil
	}
	proxy := false
	for _, w := range withoutCode(argv)[1:] {
		flag, value, has := strings.Cut(w.Text, "=")
		found := hostWords(w)
		switch {
		case len(found) > 0:
			out = append(out, found...)
		case proxy && (w.Dynamic || isOperand(w.Text)):
			out = append(out, Operand{Word: w, Kind: Net})
		case namesHost(flag) && (w.Dynamic || value != ""):
			out = append(out, Operand{Word: Word{Text: value, Dynamic: w.Dynamic}, Kind: Net})
		}
		proxy = !has && !w.Dynamic && namesHost(w.Text)
	}
	return out
}

func withoutCode(argv []Word) (out []Word) {
	s, _ := find(argv[:1])
	if !s.has("script") {
		return argv
	}
	for i, w := range argv {
		if i == 0 || !s.isCodeFlag(w.Text) && !s.isCodeFlag(argv[i-1].Text) {
			out = append(out, w)
		}
	}
	return out
}

func namesHost(flag string) bool {
	return IsField("--proxy --https-proxy --http-proxy --registry --index-url --extra-index-url --find-links --trusted-host", flag) ||
		strings.HasPrefix(flag, "--@") && strings.HasSuffix(flag, ":registry")
}

// hostWords returns the hosts in URLs, user@host:path and github:owner/name.
func hostWords(w Word) (out []Operand) {
	found := urls(w.Text)
	if len(found) > maxURLs {
		return []Operand{{Word: Word{Dynamic: true}, Kind: Net}}
	}
	for _, u := range found {
		if file, ok := fileURL(Word{Text: u, Dynamic: w.Dynamic}); ok {
			_, path, _ := strings.Cut(u, "://") // for aws
			if !strings.HasPrefix(path, "/") {
				out = append(out, Operand{Word: Word{Text: path, Dynamic: w.Dynamic}, Kind: Read})
			}
			out = append(out, Operand{Word: file, Kind: Read})
			continue
		}
		out = append(out, Operand{Word: Word{Text: u, Dynamic: w.Dynamic}, Kind: Net})
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
		out = append(out, Operand{Word: Word{Text: "https://" + host + "/"}, Kind: Net})
	case IsField("http https ftp ftps ws wss git+ssh git+https git+http", before):
		out = append(out, Operand{Word: Word{Dynamic: true}, Kind: Net})
	case strings.IndexByte(before, '@') > 0 && alias != "" && !IsField("npm workspace file link patch portal", alias):
		out = append(out, Operand{Word: Word{Text: text, Dynamic: w.Dynamic}, Kind: Net})
	}
	return out
}

// fileURL returns the file of file:///a, file://localhost/a and file:/a.
func fileURL(w Word) (file Word, ok bool) {
	scheme, path, _ := strings.Cut(w.Text, ":")
	if !strings.EqualFold(scheme, "file") || !strings.HasPrefix(path, "/") {
		return w, false
	}
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			return Word{Dynamic: true}, true
		}
		path = rest[i:] // whatever host it names
	}
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	return Word{Text: path, Dynamic: w.Dynamic}, true
}

var forges = map[string]string{"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org", "gist": "gist.github.com"}

const maxURLs = 16

// urls returns at most maxURLs+1 URLs in a word. A word with a blank before its first URL is prose, and has none.
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
		prose := blank >= 0 && blank < start && !strings.HasSuffix(s[:start], "@ ")
		if start < at+i && (len(out) > 0 || !prose) {
			text, _, _ := strings.Cut(s[start:], " ")
			out = append(out, oneURL(text))
		}
		at += i + len("://")
	}
	return out
}

func oneURL(s string) string {
	for _, sep := range ",|;\n\t" {
		before, after, _ := strings.Cut(s, string(sep))
		if scheme, _, ok := strings.Cut(after, "://"); ok && scheme != "" && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz+") == "" {
			s = before
		}
	}
	return s
}

func isSchemeByte(c byte) bool { return isLetterOrDigit(c) || c == '+' || c == '-' }

// remotePath splits host:path and URLs like git and scp.
func remotePath(s string) (host string, isHost bool, path string) {
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil {
			return "", true, ""
		}
		return u.Hostname(), true, u.Path
	}
	before, path, found := strings.Cut(s, ":")
	if !found || strings.Contains(before, "/") || before == "" {
		return "", false, s
	}
	return before[strings.LastIndexByte(before, '@')+1:], true, path
}

// copies describes the operands of scp and rsync.
func (c *Command) copies() (out []Operand) {
	if len(c.Words) == 0 {
		return nil
	}
	into, sources := c.Words[len(c.Words)-1], c.Words[:len(c.Words)-1]
	if into.Many {
		out = append(out, Operand{Word: into, Kind: Read, Tree: true}, Operand{Word: into, Kind: Write, Tree: true})
		if n := len(sources); n > 0 {
			out = append(out, Operand{Word: sources[n-1], Kind: Write, Tree: true})
		}
	}
	_, away, _ := remotePath(into.Text)
	for _, w := range sources {
		_, isHost, path := remotePath(w.Text)
		if isHost {
			out = append(out, Operand{Word: w, Kind: Net})
		} else {
			out = append(out, Operand{Word: w, Kind: Read, Tree: true})
			if c.MayHave("--remove-source-files") {
				out = append(out, Operand{Word: w, Kind: Write, Tree: true, Link: true})
			}
		}
		if !away {
			out = append(out, copied(Word{Text: path, Dynamic: w.Dynamic}, into, c.keepsDirs())...)
		}
	}
	switch {
	case away:
		out = append(out, Operand{Word: into, Kind: Net})
	case len(sources) == 0:
		out = append(out, Operand{Word: into, Kind: Write, Tree: true})
	}
	return out
}

func (c *Command) valueFiles() (out []Operand) {
	for _, f := range c.Flags {
		switch {
		case f.spec == nil || !f.HasValue:
		case strings.HasPrefix(f.spec.values, "<"):
			out = append(out, Operand{Word: f.Value, Kind: Read})
		case strings.HasPrefix(f.spec.values, ">"):
			out = append(out, Operand{Word: f.Value, Kind: Write})
		}
	}
	return out
}

func (c *Command) globalFiles(root *spec) (out []Operand) {
	for _, f := range c.Flags {
		o := Operand{Word: f.Value, Kind: Read}
		file := root.globals[f.Name] != nil && root.globals[f.Name].values == "<"
		if file && f.HasValue && !slices.Contains(c.Operands, o) {
			out = append(out, o)
		}
	}
	return out
}

// copied returns what is written when a source is copied into a directory.
func copied(source, into Word, keepsDirs bool) []Operand {
	name := baseName(strings.TrimRight(source.Text, "/"))
	all := source.Dynamic || strings.HasSuffix(source.Text, "/") || name == ""
	if keepsDirs || all || IsField(". ..", name) {
		return []Operand{{Word: into, Kind: Write, Tree: true}}
	}
	return []Operand{{Word: into, Kind: Write}, {Word: Word{Text: into.Text + "/" + name, Dynamic: into.Dynamic}, Kind: Write, Tree: true}}
}

func (c *Command) keepsDirs() bool {
	return slices.ContainsFunc(c.Flags, func(f Flag) bool {
		return f.Dynamic || strings.HasPrefix(f.Name, "--rel") || IsField("-R --files-from", f.Name)
	})
}

// Contact parses a URL or user@host:path. host is "" if it is unknown.
func Contact(target Word, program string) (scheme, host string, port int) {
	name, _ := System(program)
	text := target.Text
	before, rest, isURL := strings.Cut(text, "://")
	fetches := IsField("curl wget", name) && (!target.Dynamic || plainAuthority().MatchString(text))
	if fetches && !isURL {
		before, rest, isURL = "http", text, true
		text = "http://" + text
	}
	switch {
	case target.Dynamic && !(isURL && strings.Contains(rest, "/")):
	case isURL:
		scheme = strings.ToLower(before)
		host, port = hostOfURL(text)
	default:
		before, _, _ = strings.Cut(text, ":")
		host = CleanHost(before[strings.LastIndexByte(before, '@')+1:])
	}
	return scheme, host, port
}

// hostOfURL returns the host and port of a URL, or "" if programs may parse it differently.
func hostOfURL(text string) (string, int) {
	u, err := url.Parse(text)
	if err != nil || strings.ContainsAny(text, "{}[]\\") {
		return "", 0
	}
	if u.User != nil && !plainUser().MatchString(text) {
		return "", 0
	}
	port, _ := strconv.Atoi(u.Port())
	if port == 0 {
		port = map[string]int{"http": 80, "https": 443, "ssh": 22, "git": 9418, "ftp": 21}[strings.ToLower(u.Scheme)]
	}
	return CleanHost(u.Hostname()), port
}

// plainUser matches URLs with an unambiguous user.
var plainUser = lazyregexp.New(`^[^:]*://[\w.~%+=!*,:-]*@[^@?#/]*(?:/|$)`)

// plainAuthority matches the beginning of a URL without a scheme whose host is complete.
var plainAuthority = lazyregexp.New(`^[\w.-]+(?::\d+)?/`)

// plainHost does not match numeric notations such as 0x7f.1 and 2130706433.
var plainHost = lazyregexp.New(`^(?:[A-Za-z0-9_-]*\.)*[A-Za-z_-][A-Za-z0-9_-]*$`)

// CleanHost normalises a host. It returns "" for notations that programs may read differently.
func CleanHost(host string) string {
	host = strings.TrimSuffix(host, ".")
	inner, _ := strings.CutPrefix(host, "[")
	if ip := net.ParseIP(strings.TrimSuffix(inner, "]")); ip != nil {
		return ip.String()
	}
	if !plainHost().MatchString(host) { // before it is folded: K (U+212A) becomes k
		return ""
	}
	return strings.ToLower(host)
}
