package check

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// command checks the patterns and flags of a rule about commands.
func (l *linter) command(r policy.Rule) {
	for _, pattern := range r.Run {
		words := append(strings.Fields(pattern), "", "")
		switch {
		case r.Action == policy.Allow && (words[0] == "*" || words[0] == "**"):
			l.warn(r, pattern, fmt.Sprintf("%q", pattern), "{} allows every program, and code that stands in a command too; name the programs, or write defaults: {bash: allow}, which asks for such code")
		case r.Action != policy.Allow && bare(pattern):
			l.warnAboutArguments(r, pattern)
		}
		for _, sample := range samples(pattern) {
			for _, flag := range r.RequireFlags {
				sample += " " + strings.ReplaceAll(flag, "*", "sample")
				l.warnIfUnseen(r, flag, strings.Fields(sample)[0])
			}
			l.sample(r, pattern, sample, words[1])
		}
	}
	l.flags(r, "permit_flags", r.PermitFlags)
	l.flags(r, "forbid_flags", r.ForbidFlags)
}

var assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)

// sample checks a rule with a command that the pattern matches.
func (l *linter) sample(r policy.Rule, pattern, sample, second string) {
	words := strings.Fields(sample)
	name, subject := words[0], fmt.Sprintf("%q", sample)
	near := misspelled(name)
	if r.Action != policy.Allow && !programs.Find(name).KnowsFlags() && slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") }) {
		l.warn(r, pattern, name, "the flags of {} are not known: their order and bundles make no difference, but a synonym is another flag; list every spelling, as in {-f,--force}")
	}
	switch {
	case assignment().MatchString(name):
		variable, _, _ := strings.Cut(name, "=")
		l.warn(r, pattern, subject, fmt.Sprintf("{}: no program has such a name; a variable is no part of a pattern: write it under env: {allow: [%s]}", variable))
		return
	case near != "":
		l.warn(r, pattern, name, fmt.Sprintf("no program {} is known; did you mean %s?", near))
	case r.Action == policy.Allow && strings.HasSuffix(pattern, " **") && !judged(name):
		l.warn(r, pattern, name, "its flags are not known: a rule about {} allows all that they can do; name the subcommands and flags that you mean, or name with forbid_flags what you do not")
	case r.Action == policy.Allow && programs.Find(name).RunsAnything() && slices.Contains([]string{"*", "**"}, second):
		l.warn(r, pattern, name, "a rule about {} allows more than it names, since it does whatever its arguments say; name the whole command")
	}
	if seen := l.seen(sample); len(seen) > 0 && !slices.Contains(seen, name) {
		l.warn(r, pattern, subject, fmt.Sprintf("{} never reaches the rule, since it is judged as %s", strings.Join(seen, ", ")))
		return
	}
	l.mutate(r, pattern, sample)
	if len(r.Dirs) == 0 {
		l.warnIfOverruled(r, pattern, sample, policy.Effect{Kind: policy.Exec, Argv: programs.Words(words), Dirs: []string{l.Policy.Options().Workspace}})
	}
}

// misspelled returns the program probably meant by a name that is not installed, or "".
func misspelled(name string) string {
	if _, err := exec.LookPath(name); err == nil {
		return ""
	}
	return programs.Find(name).Near()
}

// judged reports whether an allow rule may leave the program's flags to the analysis.
func judged(name string) bool { return programs.Find(name).Judged() || strings.Contains(name, "/") }

// seen returns the programs for which the policy judges a command.
func (l *linter) seen(command string) (programs []string) {
	effects, err := l.script(command)
	if err != nil {
		return nil
	}
	for _, e := range effects {
		if e.Kind == policy.Exec && len(e.Argv) > 0 && !e.Possible {
			programs = append(programs, e.Argv[0].Text)
		}
	}
	return programs
}

func bare(pattern string) bool {
	words := strings.Fields(pattern)
	return len(words) <= 3 && !slices.ContainsFunc(words, func(w string) bool { return strings.ContainsAny(w, `*-/.'"\`) })
}

// warnAboutArguments warns if a pattern without wildcards does not match the same command with an argument.
func (l *linter) warnAboutArguments(r policy.Rule, pattern string) {
	for _, sample := range samples(pattern) {
		more := sample + " sample"
		e := policy.Effect{Kind: policy.Exec, Argv: programs.Words(strings.Fields(more)), Dirs: []string{l.Policy.Options().Workspace}}
		if d := l.Decide([]policy.Effect{e}); d.Action > r.Action {
			l.warn(r, pattern, fmt.Sprintf("%q", more), fmt.Sprintf("it does not match {}; write %q", pattern+" **"))
		}
	}
}

// warnIfUnseen warns about a required flag with a value in a word of its own if the program's flags are unknown.
func (l *linter) warnIfUnseen(r policy.Rule, flag, program string) {
	if name, value, apart := strings.Cut(flag, " "); apart && !programs.Find(program).KnowsFlags() {
		l.warn(r, flag, program, fmt.Sprintf("require_flags: the flags of {} are not known, so %q is not seen in a command; write %q, and have commands do so", flag, name+"="+value))
	}
}

func (l *linter) flags(r policy.Rule, key string, flags []string) {
	for _, flag := range flags {
		subject := fmt.Sprintf("%q", flag)
		switch {
		case strings.Trim(flag, "*") == "" || flag == "-*" || flag == "--*":
			l.warn(r, flag, subject, key+": {} is every flag, also those that run another program; name them")
		case !strings.ContainsAny(flag[:1], "-+@*") && !strings.Contains(flag, "="):
			l.warn(r, flag, subject, fmt.Sprintf("%s: {} is no flag, since flags are compared as they are written; write %q", key, "-"+flag))
		}
	}
}
