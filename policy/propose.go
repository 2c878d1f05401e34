package policy

import "strings"

// further are programs that run what their arguments say, or reach further than
// one rule can tell, beside those of the other tables.
const further = " env xargs time timeout nohup nice ionice stdbuf setsid exec command watch flock chrt taskset find tmux screen socat nc ncat " +
	"sed vi vim nvim emacs java pwsh ash pypy npx pnpx bunx uvx pipx curl wget scp rsync rm dd mkfs shred chmod chown kill pkill killall mount umount make "

// RunsAnything reports whether a program runs what its arguments say, or reaches
// further than one rule can tell. A rule that allows it with a wildcard allows
// more than it names.
func RunsAnything(program string) bool {
	name := baseName(program)
	if plain := strings.TrimRight(name, "0123456789."); plain != "" {
		name = plain
	}
	_, interpreter := inlineCode[name]
	for _, list := range [...]string{runners, alwaysCode, codeFromInput, further} {
		interpreter = interpreter || strings.Contains(list, " "+name+" ")
	}
	return interpreter
}

// Propose returns what a user's file lacks to allow an effect that is asked: one
// rule, or one variable, the narrowest there is, tried. ok is false for what a rule
// asks on purpose, and where one rule would allow more than the effect shows.
func (p *Policy) Propose(e Effect) (lacks File, ok bool) {
	v := p.judge(e)
	if v.action != Ask || v.rule != nil || v.id == "env.dangerous" || v.id == "defaults.unanalysable" {
		return File{}, false
	}
	if e.Kind == Exec && (len(e.Argv) < 2 || RunsAnything(e.Argv[0].Text)) {
		return File{}, false
	}
	edits, becomes, ok := p.change(e, v)
	if !ok || becomes != Allow || len(edits) != 1 {
		return File{}, false
	}
	switch rules := []Rule{edits[0].rule}; edits[0].key {
	case "commands":
		lacks.Commands = rules
		return lacks, !strings.Contains(rules[0].Run[0], "*") && len(rules[0].PermitFlags) == 0
	case "paths":
		lacks.Paths = rules
	case "net":
		lacks.Net = rules
	case "env.allow":
		lacks.Env = edits[0].texts
	default:
		return File{}, false // a default is no narrow rule
	}
	return lacks, true
}
