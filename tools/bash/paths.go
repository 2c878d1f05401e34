package bash

import (
	"iter"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toold/toold/policy"
)

// neutralPaths can be read and written by everybody, and keep nothing.
var neutralPaths = map[string]bool{
	"/dev/null": true, "/dev/tty": true, "/dev/zero": true, "/dev/random": true, "/dev/urandom": true, "/dev/full": true,
	procSubst: true, // opened by nothing else: see redirect
}

// path records that a word is opened as a file.
func (w *walker) path(kind policy.Kind, wd word, s *state, source string) {
	w.operandPath(policy.Operand{Kind: kind, Word: policy.Word{Text: wd.text, Dynamic: wd.dynamic || wd.glob}}, s, source)
}

// mayBeSocket reports whether the known beginning of a redirection's target leaves
// room for /dev/tcp/host/port, which bash connects to.
func mayBeSocket(before string) bool {
	for _, name := range []string{"/dev/tcp/", "/dev/udp/"} {
		if strings.HasPrefix(before, name) || strings.HasPrefix(name, before) {
			return true
		}
	}
	return false
}

// operandPath records that an operand is read or written.
func (w *walker) operandPath(o policy.Operand, s *state, source string) {
	text := o.Word.Text
	w.guardProc(o, s, source)
	if o.Word.Dynamic || !strings.HasPrefix(text, "/") && len(s.dirs) == 0 && text != "" && text != "-" {
		w.add(policy.Effect{Kind: o.Kind, Unknown: true, Tree: o.Tree, Part: o.Part, Source: source})
		return
	}
	if text == "" || text == "-" {
		return
	}
	if host, ok := strings.CutPrefix(text, "/dev/tcp/"); ok {
		w.socket(host, source)
		return
	}
	if host, ok := strings.CutPrefix(text, "/dev/udp/"); ok {
		w.socket(host, source)
		return
	}
	for e := range w.pathEffects(o.Kind, text, s) {
		e.Tree, e.Part, e.Source = o.Tree, o.Part, source
		if o.Link && !strings.HasSuffix(text, "/") && !inProc(w.resolve(filepath.Dir(e.Path))) {
			e.Canonical = w.linkItself(e.Path)
		}
		if o.Kind == policy.Write && o.Tree && strings.HasSuffix(text, "*") && filepath.Dir(e.Path) == w.workspace {
			e = policy.Effect{Kind: policy.Write, Unknown: true, Tree: true, Source: source}
		}
		w.add(e)
	}
}

// pathEffects resolves a literal path from every folder the shell may be in. There
// is none where the folder is not known, and for the path of a neutral device.
func (w *walker) pathEffects(kind policy.Kind, text string, s *state) iter.Seq[policy.Effect] {
	return func(yield func(policy.Effect) bool) {
		dirs := s.dirs
		if strings.HasPrefix(text, "/") {
			dirs = []string{""}
		}
		for i := 0; i < len(dirs) && !neutralPaths[text]; i++ {
			raw := dirs[i] + "/" + strings.TrimPrefix(text, "/")
			if w.paths -= len(raw); w.paths <= 0 {
				w.exhausted()
				return
			}
			e := policy.Effect{Kind: kind, Path: filepath.Clean(raw), Canonical: w.canonicalPath(raw)}
			w.throughMoved(e.Path)
			more := false
			if below, ok := strings.CutPrefix(e.Canonical, procDir); ok && inProc(e.Canonical) {
				more = w.procEffects(kind, e.Path, below, s, yield)
			} else {
				more = yield(e)
			}
			if !more || w.steps <= 0 {
				return
			}
		}
	}
}

// linkItself resolves all of a path but its last component: removing or renaming
// a link is about the link.
func (w *walker) linkItself(path string) string {
	dir := w.resolve(filepath.Dir(path))
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.Base(path))
}

// socket records a connection through bash's /dev/tcp/host/port.
func (w *walker) socket(address, source string) {
	host, port, _ := strings.Cut(address, "/")
	n, _ := strconv.Atoi(port)
	w.add(policy.Effect{Kind: policy.Net, Host: cleanHost(host), Port: n, Source: source})
}

// host records that a program contacts the host of a URL or of user@host:path. e
// is what is known already.
func (w *walker) host(wd policy.Word, program word, e policy.Effect) {
	name, _ := policy.SystemProgram(program.text)
	text := wd.Text
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case wd.Dynamic && !knownHost(text):
	case isURL:
		e.Scheme = strings.ToLower(scheme)
		e.Host, e.Port = hostOfURL(text)
	case name == "curl" || name == "wget":
		e.Scheme = "http"
		e.Host, e.Port = hostOfURL("http://" + text)
	default:
		host, _, _ := strings.Cut(text, ":")
		e.Host = cleanHost(host[strings.LastIndexByte(host, '@')+1:])
	}
	w.add(e)
}

// method is GET for commands that only fetch, and "" where it is not plain.
func method(args []word) string {
	switch program, _ := policy.SystemProgram(args[0].text); program {
	case "git":
		if len(args) > 1 && (args[1].text == "clone" || args[1].text == "fetch" || args[1].text == "ls-remote") {
			return "GET"
		}
	case "curl", "wget":
		for _, a := range args[1:] {
			if a.dynamic && (a.split || a.text == "" || a.text[0] == '-') || strings.HasPrefix(a.text, "-") && !listed(fetchingFlags, a.text) {
				return ""
			}
		}
		return "GET"
	}
	return ""
}

// fetchingFlags are flags of curl and wget with which they still only fetch.
const fetchingFlags = "-s -S -f -L -v -k -i -I -q -sS -fsS -fsSL -sL -sSL -sf -fL -O -o -qO- -H -m -w -A -e --silent --show-error --fail --location --verbose --include --compressed --max-time --retry --connect-timeout --header --output --write-out -nv --quiet --no-verbose -4 -6 -G --get"

// knownHost reports whether the known beginning of a URL holds the whole host.
func knownHost(text string) bool {
	_, rest, ok := strings.Cut(text, "://")
	return ok && strings.Contains(rest, "/")
}

// hostOfURL returns the host and port of a URL, "" for one that programs may read
// differently.
func hostOfURL(text string) (string, int) {
	u, err := url.Parse(text)
	if err != nil || strings.ContainsAny(text, "{}[]\\") || u.User != nil && !plainUser(text) {
		return "", 0
	}
	port, _ := strconv.Atoi(u.Port())
	if port == 0 {
		port = map[string]int{"http": 80, "https": 443, "ssh": 22, "git": 9418, "ftp": 21}[strings.ToLower(u.Scheme)]
	}
	return cleanHost(u.Hostname()), port
}

// plainUser reports whether the user and password of a URL are such that every
// program ends them at the same @.
func plainUser(text string) bool {
	_, rest, _ := strings.Cut(text, "://")
	user, rest, _ := strings.Cut(rest, "@")
	for i := range len(user) {
		if !isAlnum(user[i]) && strings.IndexByte("-._~%+=!*,:", user[i]) < 0 {
			return false
		}
	}
	host, _, _ := strings.Cut(rest, "/")
	return !strings.ContainsAny(host, "@?#")
}

// cleanHost normalises a host; "" for text that is no host in plain writing. A
// number is no plain address: 2130706433 and 0x7f.1 are 127.0.0.1.
func cleanHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip := net.ParseIP(host); ip != nil {
		return ip.String()
	}
	for _, r := range host {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return ""
		}
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" || last[0] >= '0' && last[0] <= '9' {
		return ""
	}
	return host
}

// repository records that git runs in another repository than the workspace's:
// git runs programs that a repository's configuration names.
func (w *walker) repository(s *state, source string) {
	if s.dirs == nil {
		w.opaque("git runs in a folder known only when it runs", source)
		return
	}
	for _, dir := range s.dirs {
		if w.foreign(w.resolve(dir)) {
			w.opaque("git would obey the configuration of another repository than the workspace's", source)
			return
		}
	}
}

// foreign reports whether git, in a folder, would find another repository than the
// workspace's, or may. It remembers the answers.
func (w *walker) foreign(dir string) bool {
	var asked []string
	found, known := false, false
	for d := dir; d != w.workspace && !known && !found; d = filepath.Dir(d) {
		if found, known = w.repositories[d]; known {
			break
		}
		if w.steps -= 2; w.steps <= 0 {
			w.exhausted()
			return true
		}
		asked = append(asked, d)
		bare := w.exists(d+"/HEAD") && w.isDir(d+"/objects")
		found = d == "" || d == "/" || bare || w.exists(d+"/.git")
	}
	for _, d := range asked {
		w.repositories[d] = found
	}
	return found
}
