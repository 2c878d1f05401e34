package config

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/sandbox"
)

const gib = 1 << 30

// DefaultListen is where a daemon listens unless it is configured otherwise.
const DefaultListen = "127.0.0.1:7717"

func defaults() Config {
	return Config{
		Listen: DefaultListen,
		Tokens: []Token{
			{Name: "agent", Roles: []string{"agent"}},
			{Name: "approver", Roles: []string{"approver", "observer"}},
			{Name: "observer", Roles: []string{"observer"}},
		},
		ApprovalTime: 120 * time.Second,
		Sandbox: sandbox.Profile{
			Mode: sandbox.WorkspaceWrite,
			Limits: sandbox.Limits{
				Processes: 512, OpenFiles: 4096, FileBytes: 4 * gib, MemoryBytes: 4 * gib, TmpBytes: gib / 2,
			},
		},
		Terminal:   usualTerminal(runtime.GOOS),
		WarmShells: 2,
		LogLevel:   "info",
	}
}

func usualTerminal(system string) string {
	if system == "linux" {
		return "split"
	}
	return "off" // commands have pipes only
}

func (l *loader) build(raw file) Config {
	c := defaults()
	c.File, c.Text = l.file, l.src
	l.version(raw.Version)
	l.network(&c, raw)
	c.Tokens = l.tokens(raw, c.Tokens)
	l.duration(&c.ApprovalTime, raw.Approval.Timeout, "approval.timeout", time.Second/10, 24*time.Hour)
	l.limits(&c.Limits, raw.Limits)
	l.paths(&c, raw)
	l.sandbox(&c, raw)
	c.Caches = l.caches(&c, raw.Sandbox.Caches)
	l.egress(&c, raw)
	l.environment(&c.Env, raw)
	l.word(&c.Terminal, raw.Terminal, "terminal", "split", "single", "off")
	l.count(&c.WarmShells, raw.WarmShells, "warm_shells", bounds{0, 64})
	c.Redact = l.redact(raw.Redact)
	l.word(&c.LogLevel, raw.Log.Level, "log.level", "debug", "info", "warn", "error")
	l.store(&c.Store, raw.Audit.Store)
	l.endpoint(&c.Traces, raw.Telemetry.Endpoint)
	c.Warnings = l.warnings
	return c
}

// version refuses files for another toold. A file that names none is refused
// as well: what its keys mean must not depend on who reads it. An empty file
// says nothing and needs none.
func (l *loader) version(s scalar) {
	switch {
	case s.set && s.text != "1":
		l.fail(s, "version cannot be %q: this toold reads version 1", s.text)
	case !s.set && len(bytes.TrimSpace(comment.ReplaceAll(l.src, nil))) > 0:
		l.fail(scalar{At: place{1, 1}}, "version is missing: begin the file with \"version: 1\"")
	}
}

var comment = regexp.MustCompile(`(?m)^\s*#.*$|^---\s*$`)

func (l *loader) network(c *Config, raw file) {
	l.text(&c.Listen, raw.Listen, "listen")
	if raw.TLS.Cert.set != raw.TLS.Key.set {
		l.fail(written(raw.TLS.Key, raw.TLS.Cert), "tls needs both cert and key")
	}
	l.namedFile(&c.TLS.Cert, raw.TLS.Cert, "tls.cert")
	l.namedFile(&c.TLS.Key, raw.TLS.Key, "tls.key")
	if why := checkListen(c.Listen, raw.TLS.Cert.set); why != "" {
		l.fail(raw.Listen, "listen cannot be %q: %s", c.Listen, why)
	}
	c.AllowedHosts = l.checked(raw.AllowedHosts, "allowed_hosts", "a host name without scheme and path, such as box.example", isHost)
	c.AllowedOrigins = l.checked(raw.AllowedOrigins, "allowed_origins", "an origin, such as https://box.example:8443", isOrigin)
}

// written is the first of two settings, unless only the other is written.
func written(first, second scalar) scalar {
	if first.set {
		return first
	}
	return second
}

// checkListen returns what is wrong with an address. Other machines may reach it only over TLS.
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

func (l *loader) checked(list []scalar, key, expected string, ok func(string) bool) []string {
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
	return err == nil && u.Host == s && u.User == nil && u.Hostname() != "" && !strings.ContainsAny(s, "*")
}

// isOrigin accepts neither "*" nor "null": both would let any page in.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isHost(u.Host) && u.Scheme+"://"+u.Host == s
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

// store settles the team store. Calls cannot read the files that the variables name.
func (l *loader) store(dst *string, s scalar) {
	for word, variable := range map[string]string{"passfile": "PGPASSFILE", "servicefile": "PGSERVICEFILE", "sslkey": "PGSSLKEY"} {
		if strings.Contains(s.text, word) {
			l.fail(s, "audit.store: name the file of %s in the variable %s instead, with its full path: calls cannot read it then", word, variable)
		}
	}
	l.text(dst, s, "audit.store")
}

var tokenName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

func (l *loader) tokens(raw file, byDefault []Token) []Token {
	if len(raw.Tokens) == 0 {
		return byDefault
	}
	var out []Token
	seen := map[string]bool{}
	for i, t := range raw.Tokens {
		key := fmt.Sprintf("tokens[%d]", i)
		var name string
		l.text(&name, t.Name, key+".name")
		switch {
		case !tokenName.MatchString(name):
			l.fail(t.Name, "%s.name cannot be %q: expected up to 32 of a-z, 0-9, - and _; the token's file is named after it", key, name)
		case seen[name]:
			l.fail(t.Name, "%s.name %q is there twice", key, name)
		}
		seen[name] = true
		out = append(out, Token{Name: name, Roles: l.roles(t.Roles, t.Name, key+".roles")})
	}
	return out
}

// roles reads the roles of one token. It warns of a token whose holder may both request calls and decide on
// them.
func (l *loader) roles(list []scalar, name scalar, key string) []string {
	if len(list) == 0 {
		l.fail(name, "%s is empty: expected a list of agent, approver, observer, admin", key)
	}
	var roles []string
	for _, s := range list {
		var role string
		l.word(&role, s, key, "agent", "approver", "observer", "admin")
		roles = append(roles, role)
	}
	for _, decides := range []string{"approver", "admin"} {
		if slices.Contains(roles, "agent") && slices.Contains(roles, decides) {
			l.warn("token %q holds both agent and %s: whoever has it approves its own calls", name.text, decides)
		}
	}
	return roles
}

func (l *loader) limits(d *Limits, raw limits) {
	v := reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		is := strings.Fields(f.Tag.Get("is"))
		name := f.Tag.Get("yaml")
		switch dst := v.Field(i).Addr().Interface().(type) {
		case *time.Duration:
			var of [3]time.Duration
			for n := range of {
				of[n], _ = time.ParseDuration(is[n]) // see TestLimitsHaveDefaultsWithinTheirBounds
			}
			*dst = of[0]
			l.duration(dst, raw[name], "limits."+name, of[1], of[2])
		case *int64:
			var of [3]int64
			for n := range of {
				of[n], _ = parseSize(is[n])
			}
			*dst = of[0]
			read := l.count
			if strings.HasSuffix(is[0], "B") {
				read = l.size
			}
			read(dst, raw[name], "limits."+name, bounds{of[1], of[2]})
		}
	}
	if d.Idle <= d.Ping {
		l.fail(written(raw["idle"], raw["ping"]), "limits.idle (%s) must be longer than limits.ping (%s): a client answers once a ping", d.Idle, d.Ping)
	}
	switch most := raw["max_timeout"]; {
	case d.Timeout <= d.MaxTimeout:
	case raw["timeout"].set:
		l.fail(raw["timeout"], "limits.timeout is %s: expected at most %s", d.Timeout, d.MaxTimeout)
	default:
		l.fail(most, "limits.max_timeout (%s) must not be shorter than limits.timeout (%s)", d.MaxTimeout, d.Timeout)
	}
}

var (
	envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (l *loader) environment(e *Env, raw file) {
	e.Pass = l.checked(raw.Env.Pass, "env.pass", "a variable's name, or the beginning of names followed by *", envPattern.MatchString)
	for name, s := range raw.Env.Set {
		key := "env.set." + name
		if !envName.MatchString(name) {
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
			e.Set[name] = l.absolute(s) // as a shell would give it to a command
		}
	}
}

// redact refuses texts so short that hiding them would garble any output.
func (l *loader) redact(list []scalar) []string {
	out := l.texts(list, "redact")
	for i, v := range out {
		if v != "" && len(v) < 4 {
			l.fail(list[i], "redact[%d] has fewer than 4 bytes: it would hit harmless output", i)
		}
	}
	return out
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}
