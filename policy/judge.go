package policy

import "strings"

// blocks reports whether an asking or denying rule applies to the command.
func (cp *commandPattern) blocks(c *command, dirs []string) bool {
	r := cp.rule
	if r.Action == Allow || !cp.looseAs(c) || !r.mayBeIn(dirs) {
		return false
	}
	for _, not := range r.not {
		if _, ok := not.strict(c.argv); ok {
			return false
		}
	}
	return true
}

// mayBeIn reports whether one of the possible folders is one of the rule's.
func (r *rule) mayBeIn(dirs []string) bool {
	if len(r.dirs) == 0 || len(dirs) == 0 {
		return true
	}
	for _, dir := range dirs {
		if matchesGlob(r.dirs, dir) {
			return true
		}
	}
	return false
}

// judgeExec decides a command that nothing blocks.
func (p *Policy) judgeExec(e Effect) verdict {
	if len(e.Argv) == 0 || e.Argv[0].Dynamic {
		return verdict{action: min(p.defaults.Unanalysable, Ask), id: "defaults.unanalysable"}
	}
	var by *rule
	p.allowingCommands(e, func(r *rule) bool {
		by = r
		return false
	})
	if by != nil {
		return verdict{action: Allow, rule: by}
	}
	if p.covered(e.Argv) {
		return verdict{action: Allow, id: "presets"}
	}
	if isInlineCode(e.Argv) {
		return verdict{action: min(p.defaults.Unanalysable, Ask), id: "defaults.unanalysable"}
	}
	return verdict{action: p.defaults.Bash, id: "defaults.bash"}
}

// allowingCommands reports the allowing command rules that cover the command, until
// consider returns false.
func (p *Policy) allowingCommands(e Effect, consider func(*rule) bool) {
	if len(e.Argv) == 0 || e.Argv[0].Dynamic {
		return
	}
	for list := range p.named(baseName(e.Argv[0].Text)) {
		for _, i := range list.allowing(e.Argv) {
			cp := list.list[i]
			if cp.rule = p.current(cp.rule); cp.rule != nil && cp.allows(e) && !consider(cp.rule) {
				return
			}
		}
	}
}

// covered reports whether the presets know the command and all its flags.
func (p *Policy) covered(argv []Word) bool {
	if !p.readOnly && !p.workspace {
		return false
	}
	if covered, ok := specialCovered(argv, p.workspace); ok {
		return covered
	}
	forms, words := table().find(argv)
	for _, f := range forms {
		enabled := f.level == "read" && p.readOnly || f.level == "write" && p.workspace
		if enabled && f.parse(words).covered {
			return true
		}
	}
	return false
}

// isIn reports whether the command certainly runs in one of the rule's folders.
func (r *rule) isIn(e Effect) bool {
	if len(r.dirs) == 0 {
		return true
	}
	for _, dir := range e.Dirs {
		if !matchesGlob(r.dirs, dir) {
			return false
		}
	}
	return len(e.Dirs) > 0
}

// matches reports whether a command rule matches by its own manner.
func (p *Policy) matches(r *rule, e Effect) bool {
	for _, text := range r.Run {
		pat, err := compilePattern(text)
		if err != nil {
			return false
		}
		cp := commandPattern{pat, r}
		if r.Action == Allow && cp.allows(e) || cp.blocks(&command{argv: e.Argv, name: baseName(e.Argv[0].Text)}, nil) {
			return true
		}
	}
	return false
}

// runners run what is in their arguments and are not taken apart.
const runners = " npx bunx pnpx bun uvx sudo doas su pkexec runuser ssh docker podman kubectl script parallel unshare chroot nsenter strace ltrace systemd-run busybox toybox setarch gdb "

// runsArguments reports whether a program may run its arguments: it is known to,
// or it is not known at all.
func runsArguments(argv []Word) bool {
	name := baseName(argv[0].Text)
	if name != trustedName(argv[0].Text) {
		return true // a program of this name that lies elsewhere is another one
	}
	if strings.Contains(runners, " "+name+" ") || runsWords(argv) {
		return true
	}
	_, unsafe := unsafeFlags[name]
	_, globals := globalOptions[name]
	return !unsafe && !globals && !table().knows(name)
}

// knows reports whether a name is in the table, with or without subcommands.
func (t commandTable) knows(name string) bool {
	switch name {
	case "find", "sed", "awk", "gawk", "mawk", "nawk", "cd", "export", "set", "unset", "read", "local", "declare":
		return true
	}
	return t[name] != nil
}

// wordsIn splits text that may be a script into what could be its words.
func wordsIn(text string) []Word {
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()`'\"{}", r) })
	words := make([]Word, len(fields))
	for i, f := range fields {
		words[i].Text = f
	}
	return words
}

// matchesGlob reports whether one of the globs matches path.
func matchesGlob(globs []glob, path string) bool {
	for i := range globs {
		if globs[i].match(path) {
			return true
		}
	}
	return false
}

// concerns reports whether a path rule is about this operation.
func (r *rule) concerns(kind Kind) bool {
	if len(r.Ops) == 0 {
		return true
	}
	for _, op := range r.Ops {
		if op == kind {
			return true
		}
	}
	return false
}

// blocksPath reports whether an asking or denying rule applies to the path, in
// either of its forms, or to something below it when the effect is a whole tree.
//
// whole is false when only something below the path is concerned by a recursive
// read: that asks, and does not stand for a decision about the rest.
func (r *rule) blocksPath(e Effect) (action Action, whole, ok bool) {
	if r.Action == Allow || !r.concerns(e.Kind) {
		return Allow, false, false
	}
	for i, form := range [...]string{e.Path, e.Canonical} {
		if form == "" || i > 0 && form == e.Path {
			continue
		}
		if matchesGlob(r.globs, form) && !matchesGlob(r.except, form) {
			return r.Action, true, true
		}
		if e.Tree && r.reaches(form, e) && !r.excepts(form) {
			if e.Kind == Write {
				return r.Action, true, true
			}
			// A recursive read comes across what must not be read; one that only
			// asks would make every search ask.
			if r.Action == Deny {
				action, ok = Ask, true
			}
		}
	}
	return action, false, ok
}

// reaches reports whether the rule singles out something below path that the
// effect is about.
func (r *rule) reaches(path string, e Effect) bool {
	if r.file == "" && e.Kind == Write && e.Part != "" {
		return false // what is only put in another form goes on doing what it does
	}
	for i := range r.globs {
		if r.globs[i].reaches(path) && r.globs[i].holds(e.Part) {
			return true
		}
	}
	return false
}

// excepts reports whether the exceptions cover all that is below path.
func (r *rule) excepts(path string) bool {
	for i := range r.except {
		if r.except[i].covers(path) {
			return true
		}
	}
	return false
}

// allowsPath reports whether an allowing rule covers the path as it really is.
func (r *rule) allowsPath(e Effect) bool {
	if !r.concerns(e.Kind) || matchesGlob(r.except, e.Canonical) || matchesGlob(r.except, e.Path) {
		return false
	}
	for i := range r.except {
		if e.Tree && e.Kind == Write && r.except[i].reaches(e.Canonical) && r.except[i].holds(e.Part) {
			return false
		}
	}
	for i := range r.globs {
		if e.Tree && r.globs[i].covers(e.Canonical) || !e.Tree && r.globs[i].match(e.Canonical) {
			return true
		}
	}
	return false
}

// matchesHost reports whether a rule about hosts matches. loosely, what is not
// known matches.
func (r *rule) matchesHost(e Effect, loosely bool) bool {
	if e.Host == "" || !hostIn(r.Hosts, e.Host) || hostIn(r.Except, e.Host) {
		return false
	}
	portOK := len(r.Ports) == 0 || loosely && e.Port == 0
	for _, port := range r.Ports {
		portOK = portOK || port == e.Port
	}
	return portOK && listed(r.Schemes, e.Scheme, loosely) && listed(r.Methods, e.Method, loosely)
}

// hostIn reports whether a host is one of the names or below one of the *.names.
func hostIn(hosts []string, host string) bool {
	for _, h := range hosts {
		if suffix, ok := strings.CutPrefix(h, "*"); ok && strings.HasSuffix(host, suffix) || h == host {
			return true
		}
	}
	return false
}

// listed reports whether a value is in a list; an empty list is every value.
func listed(list []string, value string, loosely bool) bool {
	if len(list) == 0 || loosely && value == "" {
		return true
	}
	for _, v := range list {
		if strings.EqualFold(v, value) {
			return true
		}
	}
	return false
}
