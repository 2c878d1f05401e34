package shell

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// socket records a connection through bash's /dev/tcp/host/port.
func (w *walker) socket(address, source string) {
	host, port, _ := strings.Cut(address, "/")
	n, _ := strconv.Atoi(port)
	w.add(policy.Effect{Kind: policy.Net, Host: cleanHost(host), Port: n, Source: source})
}

// host records that a program contacts the host of a URL or of user@host:path. e
// is what is known already.
func (w *walker) host(wd policy.Word, program word, e policy.Effect) {
	name, _ := programs.System(program.text)
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
