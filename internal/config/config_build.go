package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/lazyregexp"
)

// DefaultListen is the default address.
const DefaultListen = "127.0.0.1:7717"

func (l *loader) build() Config {
	c := Config{File: l.file, NamesFile: l.named, NamesPolicy: l.scalar("policy").origin != "", Text: l.src}
	l.version(l.scalar("version"))
	l.fields(&c)
	if runtime.GOOS != "linux" && !l.scalar("terminal").set {
		c.Terminal = "off" // commands have only pipes
	}
	l.network(&c)
	c.Tokens = l.tokens(*l.raw["tokens"].(*[]rawToken))
	l.limits(c.Limits)
	l.paths(&c)
	l.sandbox(&c)
	c.Caches = l.caches(&c, l.list("sandbox.caches"))
	l.egress(&c)
	l.environment(&c.Env)
	c.Redact = l.redact(l.list("redact"))
	l.store(&c.Store, l.scalar("audit.store"))
	l.endpoint(&c.Traces, l.scalar("telemetry.otlp_endpoint"))
	c.Warnings = l.warnings
	return c
}

// version rejects files of other versions. A file without a version must be empty.
func (l *loader) version(s scalar) {
	switch {
	case s.set && s.text != "1":
		l.fail(s, "version cannot be %q: this toold reads version 1", s.text)
	case !s.set && len(bytes.TrimSpace(comment().ReplaceAll(bytes.TrimPrefix(l.src, []byte("\ufeff")), nil))) > 0:
		l.fail(scalar{At: position{1, 1}}, "version is missing: begin the file with \"version: 1\"")
	}
}

var comment = lazyregexp.New(`(?m)^\s*#.*$|^---\s*$`)

func (l *loader) network(c *Config) {
	cert, key, listen := l.scalar("tls.cert"), l.scalar("tls.key"), l.scalar("listen")
	if cert.set != key.set {
		l.fail(cmp.Or(key, cert), "tls needs both cert and key")
	}
	l.namedFile(&c.TLS.Cert, cert, "tls.cert")
	l.namedFile(&c.TLS.Key, key, "tls.key")
	if why := checkListen(c.Listen, cert.set); why != "" {
		l.fail(listen, "listen cannot be %q: %s", c.Listen, why)
	}
	c.AllowedHosts = l.textsMatching("allowed_hosts", "a host name without scheme and path, such as box.example", isHost)
	c.AllowedOrigins = l.textsMatching("allowed_origins", "an origin, such as https://box.example:8443", isOrigin)
}

// checkListen returns what is wrong with an address, or "". A host other than loopback needs TLS.
func checkListen(address string, tls bool) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "expected host:port, such as 127.0.0.1:7717"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "the port must be a number from 0 (any free one) to 65535"
	}
	if tls || isLoopback(host) {
		return ""
	}
	return "other machines can reach this address: set tls.cert and tls.key, or listen on 127.0.0.1"
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (l *loader) textsMatching(key, expected string, ok func(string) bool) []string {
	list := l.list(key)
	out := l.texts(list, key)
	for i, v := range out {
		if v != "" && !ok(v) {
			l.fail(list[i], "%s[%d] cannot be %q: expected %s", key, i, v, expected)
		}
	}
	return out
}

func isHost(s string) bool {
	u, err := url.Parse("http://" + s)
	if err != nil || u.Host != s || u.User != nil {
		return false
	}
	return u.Hostname() != "" && !strings.Contains(s, "*")
}

// isOrigin reports whether s is an origin. "*" and "null" are not: they would admit every page.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	return isHost(u.Host) && u.Scheme+"://"+u.Host == s
}

func (l *loader) endpoint(dst *string, s scalar) {
	const key = "telemetry.otlp_endpoint"
	var base string
	if l.text(&base, s, key); base == "" {
		return
	}
	u, err := url.Parse(base)
	plain := err == nil && u.User == nil && u.RawQuery+u.Fragment == ""
	if !plain || !isOrigin(u.Scheme+"://"+u.Host) {
		l.fail(s, "%s cannot be %q: expected a URL without a query and a password, such as http://127.0.0.1:4318", key, s.text)
		return
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		l.fail(s, "%s is on another machine: use https, or a collector on this machine that passes the traces on", key)
		return
	}
	*dst = u.JoinPath("v1/traces").String()
}

// store rejects a connection string that names files: only files named by variables are hidden from calls.
func (l *loader) store(dst *string, s scalar) {
	for word, variable := range map[string]string{"passfile": "PGPASSFILE", "servicefile": "PGSERVICEFILE", "sslkey": "PGSSLKEY"} {
		if strings.Contains(s.text, word) {
			l.fail(s, "audit.store: name the file of %s in the variable %s instead, with its full path: calls cannot read it then", word, variable)
		}
	}
	l.text(dst, s, "audit.store")
}

var tokenName = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,31}$`)

type rawToken struct {
	Name  scalar   `yaml:"name"`
	Roles []scalar `yaml:"roles"`
}

func (l *loader) tokens(list []rawToken) (out []Token) {
	if len(list) == 0 {
		return []Token{{"agent", []string{"agent"}}, {"approver", []string{"approver", "observer"}}, {"observer", []string{"observer"}}}
	}
	seen := map[string]bool{}
	for i, t := range list {
		key := fmt.Sprintf("tokens[%d]", i)
		var name string
		l.text(&name, t.Name, key+".name")
		switch {
		case !tokenName().MatchString(name):
			l.fail(t.Name, "%s.name cannot be %q: expected up to 32 of a-z, 0-9, - and _; the token's file is named after it", key, name)
		case seen[name]:
			l.fail(t.Name, "%s.name %q is there twice", key, name)
		}
		seen[name] = true
		out = append(out, Token{Name: name, Roles: l.roles(t.Roles, t.Name, key+".roles")})
	}
	return out
}

// roles reads the roles of a token. It warns of a token that may both request calls and decide on them.
func (l *loader) roles(list []scalar, name scalar, key string) []string {
	if len(list) == 0 {
		l.fail(name, "%s is empty: expected a list of agent, approver, observer, admin", key)
	}
	var roles []string
	for _, s := range list {
		var role string
		l.oneOf(&role, s, key, "agent", "approver", "observer", "admin")
		roles = append(roles, role)
	}
	for _, decides := range []string{"approver", "admin"} {
		if slices.Contains(roles, "agent") && slices.Contains(roles, decides) {
			l.warn("token %q holds both agent and %s: whoever has it approves its own calls", name.text, decides)
		}
	}
	return roles
}

func (l *loader) limits(d Limits) {
	if d.Idle <= d.Ping {
		l.fail(cmp.Or(l.scalar("limits.idle"), l.scalar("limits.ping")), "limits.idle (%s) must be longer than limits.ping (%s): a client answers once a ping", d.Idle, d.Ping)
	}
	switch timeout := l.scalar("limits.timeout"); {
	case d.Timeout <= d.MaxTimeout:
	case timeout.set:
		l.fail(timeout, "limits.timeout is %s: expected at most %s", d.Timeout, d.MaxTimeout)
	default:
		l.fail(l.scalar("limits.max_timeout"), "limits.max_timeout (%s) must not be shorter than limits.timeout (%s)", d.MaxTimeout, d.Timeout)
	}
}

var (
	envPattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)
	envName    = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (l *loader) environment(e *Env) {
	e.Pass = l.textsMatching("env.pass", "a variable's name, or the beginning of names followed by *", envPattern().MatchString)
	for i, s := range l.list("env.pass") {
		l.forbidden(s, fmt.Sprintf("env.pass[%d]", i), executor.EnvOptions{Pass: []string{s.text}})
	}
	set := *l.raw["env.set"].(*map[string]scalar)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		s, key := set[name], "env.set."+name
		l.forbidden(s, key, executor.EnvOptions{Set: map[string]string{name: s.text}})
		if !envName().MatchString(name) {
			l.fail(s, "%s is not the name of a variable", key)
		}
		if !s.set {
			continue
		}
		if strings.ContainsRune(s.text, 0) {
			l.fail(s, "%s contains a NUL", key)
		}
		if e.Set == nil {
			e.Set = map[string]string{}
		}
		e.Set[name] = s.text
		if strings.HasPrefix(s.text, "~/") || s.text == "~" {
			e.Set[name] = l.absolute(s) // as shells do
		}
	}
}

// forbidden rejects a variable that commands never get.
func (l *loader) forbidden(s scalar, key string, o executor.EnvOptions) {
	for _, name := range executor.NeverPass(o) {
		l.fail(s, "%s: %s cannot be given to commands: such a variable changes what judged commands mean, opens a cloud account, or is toold's own; take it out", key, name)
	}
}

// redact rejects texts so short that masking them would garble all output.
func (l *loader) redact(list []scalar) []string {
	out := l.texts(list, "redact")
	for i, v := range out {
		if v != "" && len(strings.TrimRight(v, "\r\n")) < 4 {
			l.fail(list[i], "redact[%d] has fewer than 4 bytes: it would hit harmless output", i)
		}
	}
	return out
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}
