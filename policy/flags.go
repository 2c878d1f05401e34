package policy

import (
	"fmt"
	"strings"
)

// allows reports whether an allowing rule covers the command with all its flags.
func (cp *commandPattern) allows(e Effect) bool {
	lacking, ok := cp.covers(e)
	return ok && len(lacking) == 0
}

// covers reports whether an allowing rule covers the command but for some unsafe
// flags, which its permit_flags would have to name.
func (cp *commandPattern) covers(e Effect) (lacking []Word, ok bool) {
	r := cp.rule
	if r.Action != Allow || !r.isIn(e) {
		return nil, false
	}
	free, ok := cp.strict(e.Argv)
	if !ok {
		return nil, false
	}
	for _, not := range r.not {
		if not.loose(e.Argv) {
			return nil, false
		}
	}
	if unnamed(e.Argv, free) {
		return nil, false
	}
	program := baseName(e.Argv[0].Text)
	for _, w := range e.Argv[1:] {
		for _, flag := range r.ForbidFlags {
			if sameFlag(program, "", flag, w.Text) {
				return nil, false
			}
		}
	}
	unsafe := unsafeIn(e.Argv)
	for _, i := range free {
		w := e.Argv[i]
		if i > 0 && unsafe(i) && (w.Dynamic || !r.permits(program, w.Text)) {
			lacking = append(lacking, w)
		}
	}
	return lacking, true
}

// permits reports whether the rule wants to cover an unsafe flag.
func (r *rule) permits(program, word string) bool {
	if matchesAny(r.PermitFlags, word) {
		return true
	}
	short, ok := strings.CutPrefix(word, "--")
	return ok && goFlags[program] && matchesAny(r.PermitFlags, "-"+short)
}

// nearest returns the rule that allows a command but for the fewest of its flags,
// and these; nil where there is none. known leaves out flags that are known only
// at run time.
func (p *Policy) nearest(e Effect, known bool) (best *rule, flags []Word) {
	if e.Kind != Exec || len(e.Argv) == 0 || e.Argv[0].Dynamic || size(e.Argv) > maxTried {
		return nil, nil
	}
	for list := range p.named(baseName(e.Argv[0].Text)) {
		for _, i := range list.allowing(e.Argv) {
			cp := list.list[i]
			if cp.rule = p.current(cp.rule); cp.rule == nil {
				continue
			}
			lacking, ok := cp.covers(e)
			if ok && len(lacking) > 0 && (best == nil || len(lacking) < len(flags)) && (!known || !anyDynamic(lacking)) {
				best, flags = cp.rule, lacking
			}
		}
	}
	return best, flags
}

// maxFlags bounds the flags that a reason names.
const maxFlags = 4

// butFor names the rule that allows a command but for some of its flags, for people.
func (p *Policy) butFor(e Effect) string {
	r, flags := p.nearest(e, false)
	if r == nil {
		return ""
	}
	var names []string
	for _, w := range flags[:min(len(flags), maxFlags)] {
		if w.Dynamic {
			w.Text += "…"
		}
		names = append(names, shorten(w.Text))
	}
	if len(flags) > maxFlags {
		names = append(names, "others")
	}
	return fmt.Sprintf(": rule %q would, but for %s, which its permit_flags do not name", r.ID, strings.Join(names, " and "))
}

// mildFlags are unsafe flags of which a rule may permit any value: they name what
// is written, or say that what was read is written.
const mildFlags = " -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir --output --output-file --outputFile --outFile " +
	"--outDir --out-dir --declarationDir --junitxml --junit-xml --log-file --fix --fix-dry-run --unsafe-fixes --write --tsBuildInfoFile "

// isMild reports whether a rule may permit any value of a flag. -o is the output of
// some programs only.
func isMild(program, flag string) bool {
	return strings.Contains(mildFlags, " "+flag+" ") || flag == "-o" && strings.Contains(" go gcc cc curl wget eslint sort ", " "+program+" ")
}

// permitting returns the edit that makes the user's own rule cover the flags that
// it lacks for a command: mild ones, and others with just this value.
func (p *Policy) permitting(e Effect) (edit, bool) {
	r, flags := p.nearest(e, true)
	if r == nil || r.file != p.files[0].Name || isInlineCode(e.Argv) {
		return edit{}, false
	}
	var texts []string
	for _, w := range flags {
		text := w.Text
		name, _, valued := strings.Cut(text, "=")
		mild := isMild(baseName(e.Argv[0].Text), name)
		switch {
		case mild && valued:
			text = name + "=*"
		case !mild && (!valued || strings.Contains(text, "*")):
			return edit{}, false
		}
		texts = append(texts, text)
	}
	return edit{file: r.file, key: "permit_flags", at: r, texts: texts}, true
}
