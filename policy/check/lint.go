package check

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

type linter struct {
	*Judge
	findings []*oddity
}

type oddity struct {
	policy.Fault
	subjects []string // replace {} in the problem
}

const maxSubjects = 3

// Lint returns warnings about the rules of the user's file.
func (j *Judge) Lint() []*policy.Fault {
	l, f := &linter{Judge: j}, j.Policy.User()
	for _, r := range f.Commands {
		l.command(r)
	}
	for _, r := range f.Paths {
		l.lintPaths(r)
	}
	for _, r := range f.Net {
		l.lintHosts(r)
	}
	l.lintEnv(f.Env)
	var faults []*policy.Fault
	for _, f := range l.findings {
		names := strings.Join(f.subjects[:min(len(f.subjects), maxSubjects)], ", ")
		if more := len(f.subjects) - maxSubjects; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		f.Problem = strings.Replace(f.Problem, "{}", names, 1)
		faults = append(faults, &f.Fault)
	}
	return faults
}

// warn records a problem of a rule; subject replaces {} in it. Problems that differ only in the subject become one
// warning that lists the subjects.
func (l *linter) warn(r policy.Rule, value, subject, problem string) {
	l.note(policy.Fault{File: l.Policy.User().Name, Line: r.Line, Rule: r.ID, Value: value, Problem: problem}, subject)
}

func (l *linter) note(fault policy.Fault, subject string) {
	for _, f := range l.findings {
		if f.Rule == fault.Rule && f.Key == fault.Key && f.Problem == fault.Problem {
			if !slices.Contains(f.subjects, subject) {
				f.subjects = append(f.subjects, subject)
			}
			return
		}
	}
	l.findings = append(l.findings, &oddity{fault, []string{subject}})
}

// warnIfOverruled decides on an effect that the rule names, and warns if the decision is stricter than the rule's
// action.
func (l *linter) warnIfOverruled(r policy.Rule, value, sample string, e policy.Effect) {
	subject := fmt.Sprintf("%q", sample)
	switch d := l.Decide([]policy.Effect{e}); {
	case d.Action >= r.Action, d.Rule == r.ID, len(r.Except) > 0 && r.Action != policy.Allow:
	case strings.HasPrefix(d.Rule, "defaults."):
		l.warn(r, value, subject, "it does not match {}, which its pattern names: "+d.Reason)
	default:
		l.warn(r, value, subject, fmt.Sprintf("{}: rule %q decides (%s): %s; put an exception into that rule, or narrow this one", d.Rule, d.Source, d.Action))
	}
}

func (l *linter) lintPaths(r policy.Rule) {
	o, ops := l.Policy.Options(), r.Ops
	if len(ops) == 0 {
		ops = []policy.Kind{policy.Read, policy.Write}
	}
	for _, pattern := range r.Paths {
		places := strings.NewReplacer("${workspace}", o.Workspace, "${home}", o.Home, "${tmp}", o.Tmp)
		path := places.Replace(pattern)
		if info, err := os.Stat(path); err == nil && info.IsDir() && !strings.Contains(pattern, "*") {
			l.warn(r, pattern, fmt.Sprintf("%q", pattern), fmt.Sprintf("{} is a folder, and the pattern does not mean what is in it; write %q", strings.TrimSuffix(pattern, "/")+"/**"))
		}
		path = strings.NewReplacer("**", "sample", "*", "sample").Replace(path)
		for _, path := range alternatives(path) {
			canonical := path
			if o.Resolve != nil {
				canonical = o.Resolve(path)
			}
			if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "{}[]?$\\") || len(r.Except) > 0 {
				continue
			}
			for _, op := range ops {
				l.warnIfOverruled(r, pattern, op.String()+" "+path, policy.Effect{Kind: op, Path: path, Canonical: canonical})
			}
		}
	}
}

func (l *linter) lintEnv(patterns []string) {
	for _, pattern := range patterns {
		name := strings.ReplaceAll(pattern, "*", "SAMPLE")
		problem := ""
		switch {
		case name == "" || strings.ContainsAny(name, "= $\t"):
			problem = "{}: no variable has such a name; write the name alone"
		case name != pattern && policy.IsDangerousEnv(name):
			problem = "{}: programs load code by such variables, and a wildcard does not cover them; write each name in full"
		case pattern == "*":
			problem = "{}: it allows every variable but those by which programs load code"
		default:
			continue
		}
		l.note(policy.Fault{File: l.Policy.User().Name, Key: "env.allow", Value: pattern, Problem: problem}, pattern)
	}
}

func (l *linter) lintHosts(r policy.Rule) {
	for _, port := range r.Ports {
		if port < 1 || port > 65535 {
			l.warn(r, fmt.Sprint(port), fmt.Sprint(port), "no port has the number {}: the rule cannot match it")
		}
	}
	l.warnUnknown(r, "scheme", strings.ToLower, r.Schemes, "http https ftp ftps sftp ssh git git+ssh git+https scp rsync ws wss tcp udp svn svn+ssh s3 gs oci docker redis rediss postgres postgresql mysql mongodb amqp amqps ldap ldaps smtp smtps imap imaps pop3 telnet grpc nats mqtt")
	l.warnUnknown(r, "method", strings.ToUpper, r.Methods, "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT")
	for _, pattern := range r.Hosts {
		name := programs.CleanHost(strings.Replace(pattern, "*.", "sample.", 1))
		e := policy.Effect{Kind: policy.Net, Host: name, Port: firstOf(r.Ports, 443), Scheme: firstOf(r.Schemes, "https"), Method: firstOf(r.Methods, "GET")}
		l.warnIfOverruled(r, pattern, "contact "+name, e)
	}
}

func firstOf[T any](list []T, otherwise T) T { return append(slices.Clip(list), otherwise)[0] }

func (l *linter) warnUnknown(r policy.Rule, what string, fold func(string) string, words []string, list string) {
	for _, word := range words {
		if !programs.IsField(list, fold(word)) {
			l.warn(r, word, fmt.Sprintf("%q", word), fmt.Sprintf("no command is known to contact a host by the %s {}; known are %s", what, strings.Join(strings.Fields(list)[:6], ", ")+" and others"))
		}
	}
}
