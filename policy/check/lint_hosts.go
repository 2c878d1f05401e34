package check

import (
	"fmt"
	"net"
	"strings"

	"github.com/toold/toold/policy"
)

// host tries a rule about hosts on hosts of its own patterns, and warns of what no
// host is ever called.
func (l *linter) host(r policy.Rule) {
	for _, port := range r.Ports {
		if port < 1 || port > 65535 {
			l.warn(r, fmt.Sprint(port), fmt.Sprint(port), "no port has the number {}: the rule cannot match it")
		}
	}
	l.known(r, "scheme", strings.ToLower, r.Schemes, "http https ftp ftps sftp ssh git git+ssh git+https scp rsync ws wss tcp udp svn svn+ssh s3 gs oci docker redis rediss postgres postgresql mysql mongodb amqp amqps ldap ldaps smtp smtps imap imaps pop3 telnet grpc nats mqtt")
	l.known(r, "method", strings.ToUpper, r.Methods, "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT")
	for _, pattern := range r.Hosts {
		name := strings.ToLower(strings.Replace(pattern, "*.", "sample.", 1))
		subject := fmt.Sprintf("%q", pattern)
		switch {
		case strings.Contains(name, ":") && net.ParseIP(name) == nil:
			l.warn(r, pattern, subject, "no host is called {}: the port stands under ports, the scheme under schemes, an IPv6 address without brackets")
		case strings.HasSuffix(name, "."):
			l.warn(r, pattern, subject, "no host is called {}: names are compared without the dot at the end")
		default:
			l.tried(r, pattern, "contact "+name, exampleOf(r, name))
		}
	}
}

// exampleOf is a contact that a rule about a host must match.
func exampleOf(r policy.Rule, host string) policy.Effect {
	e := policy.Effect{Kind: policy.Net, Host: host, Port: 443, Scheme: "https", Method: "GET"}
	if len(r.Ports) > 0 {
		e.Port = r.Ports[0]
	}
	if len(r.Schemes) > 0 {
		e.Scheme = strings.ToLower(r.Schemes[0])
	}
	if len(r.Methods) > 0 {
		e.Method = r.Methods[0]
	}
	return e
}

// known warns of words of which none of the known ones is meant.
func (l *linter) known(r policy.Rule, what string, fold func(string) string, words []string, list string) {
	for _, word := range words {
		if !strings.Contains(" "+list+" ", " "+fold(word)+" ") {
			l.warn(r, word, fmt.Sprintf("%q", word), fmt.Sprintf("no command is known to contact a host by the %s {}; known are %s", what, strings.Join(strings.Fields(list)[:6], ", ")+" and others"))
		}
	}
}
