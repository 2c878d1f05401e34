package main

import (
	"net"
	"strings"

	"github.com/toold/toold/policy"
)

// host tries a rule about hosts on hosts of its own patterns, and warns of what no
// host is ever called.
func (l *linter) host(r policy.Rule) {
	for _, port := range r.Ports {
		if port < 1 || port > 65535 {
			l.warn(r, "no port has the number %d: the rule cannot match it", port)
		}
	}
	for _, pattern := range r.Hosts {
		name := strings.ToLower(strings.Replace(pattern, "*.", "sample.", 1))
		switch {
		case strings.Contains(name, ":") && net.ParseIP(name) == nil:
			l.warn(r, "no host is called %q: the port stands under ports, the scheme under schemes, an IPv6 address without brackets", pattern)
		case strings.HasSuffix(name, "."):
			l.warn(r, "no host is called %q: names are compared without the dot at the end", pattern)
		default:
			e := policy.Effect{Kind: policy.Net, Host: name, Port: 443, Scheme: "https", Method: "GET"}
			if len(r.Ports) > 0 {
				e.Port = r.Ports[0]
			}
			if len(r.Schemes) > 0 {
				e.Scheme = strings.ToLower(r.Schemes[0])
			}
			if len(r.Methods) > 0 {
				e.Method = r.Methods[0]
			}
			l.tried(r, "contact "+name, e)
		}
	}
}

// variables warns of patterns of variables that do not mean what they seem to.
func (l *linter) variables(patterns []string) {
	for _, pattern := range patterns {
		name := strings.ReplaceAll(pattern, "*", "SAMPLE")
		what := ""
		switch {
		case name == "" || strings.ContainsAny(name, "= $\t"):
			what = "no variable has such a name; write the name alone"
		case name != pattern && policy.IsDangerousEnv(name):
			what = "programs load code by such variables, and a wildcard does not cover them; write each name in full"
		case pattern == "*":
			what = "it allows every variable but those by which programs load code"
		default:
			continue
		}
		l.warnings = append(l.warnings, l.file+": env.allow: "+pattern+": "+what)
	}
}

// maxSamples bounds the commands that are tried for one pattern.
const maxSamples = 32

// samples are commands that a pattern names: each alternative of a word once,
// an operand for *, nothing for **. A pattern with quotes gives none.
func samples(pattern string) []string {
	if strings.ContainsAny(pattern, `'"\`) {
		return nil
	}
	list := []string{""}
	for _, word := range strings.Fields(pattern) {
		var next []string
		for _, before := range list {
			for _, choice := range alternatives(word) {
				choice = strings.ReplaceAll(strings.ReplaceAll(choice, "**", ""), "*", "sample")
				next = append(next, strings.TrimSpace(before+" "+choice))
			}
		}
		if len(next) == 0 {
			return nil
		}
		list = next[:min(len(next), maxSamples)]
	}
	if list[0] == "" {
		return nil // of any program
	}
	return list
}

// alternatives splits {a,b}; a word with several or nested braces gives none.
func alternatives(word string) []string {
	before, rest, ok := strings.Cut(word, "{")
	if !ok {
		return []string{word}
	}
	inner, after, _ := strings.Cut(rest, "}")
	if strings.ContainsAny(inner+after, "{}") {
		return nil
	}
	var list []string
	for choice := range strings.SplitSeq(inner, ",") {
		list = append(list, before+choice+after)
	}
	return list
}

func literal(words []string) []policy.Word {
	argv := make([]policy.Word, len(words))
	for i, w := range words {
		argv[i].Text = w
	}
	return argv
}
