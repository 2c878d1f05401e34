package protect

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/internal/redact"
)

var (
	sectionLine = lazyregexp.New(`^\[([a-zA-Z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\["\\])*)")?\]$`)
	keyLine     = lazyregexp.New(`^([a-zA-Z][a-zA-Z0-9-]*)[ \t]*(?:=(.*))?$`)
	transport   = lazyregexp.New(`^\s*[a-zA-Z0-9+.-]+::`)
	unquote     = strings.NewReplacer(`"`, "", `\`, "")
)

// allowed lists the settings that git itself writes and that run nothing, by section and key (git-config(1)). For
// sections with a quoted name, such as [remote "origin"], the entry is the section alone.
var allowed = map[string]string{
	"core":       " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks sparsecheckout sparsecheckoutcone autocrlf eol safecrlf untrackedcache splitindex commitgraph multipackindex ",
	"extensions": " objectformat refstorage worktreeconfig partialclone compatobjectformat preciousobjects ",
	"remote":     " url fetch pushurl tagopt mirror prune promisor partialclonefilter skipfetchall pushdefault gh-resolved ",
	"branch":     " remote pushremote merge rebase description autosetuprebase ",
	"submodule":  " url active branch path ignore shallow fetchrecursesubmodules alternatelocation alternateerrorstrategy ",
	"user":       " name email ",
	"init":       " defaultbranch ",
	"pull":       " rebase ff ",
	"push":       " default autosetupremote ",
	"gc":         " auto autopacklimit ",
	"index":      " version threads ",
	"feature":    " manyfiles experimental ",
	"lfs":        " repositoryformatversion ",
}

// settings yields each setting of a git configuration, such as "core.bare". Lines that it cannot parse have the key
// "", since git may understand them.
func settings(text string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		section := ""
		for line := range strings.SplitSeq(text, "\n") {
			line = strings.Trim(line, " \t\r")
			if line == "" || line[0] == '#' || line[0] == ';' {
				continue
			}
			if m := sectionLine().FindStringSubmatch(line); m != nil {
				section = strings.ToLower(m[1])
				continue
			}
			key, value := "", line
			if m := keyLine().FindStringSubmatch(line); m != nil {
				key, value = section+"."+strings.ToLower(m[1]), strings.TrimSpace(m[2])
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

// checkConfig returns why a git configuration is not allowed, or "". What it cannot parse is not allowed. worktree
// reports whether a value of core.worktree is allowed.
func checkConfig(text string, worktree func(value string) bool) string {
	for key, value := range settings(text) {
		if why := checkSetting(key, value, worktree); why != "" {
			return why
		}
	}
	return ""
}

func checkSetting(key, value string, worktree func(value string) bool) string {
	section, name, _ := strings.Cut(key, ".")
	switch {
	case key == "":
		return "it has a line that is not understood: " + redact.Short(value, 60)
	case strings.HasSuffix(value, `\`):
		return "a line goes on in the next one"
	case key == "core.worktree" && worktree(value):
		return ""
	case !strings.Contains(allowed[section], " "+name+" "):
		return "it sets " + key
	case transport().MatchString(unquote.Replace(value)):
		// Such a transport runs a program: "ext::sh -c …" (gitremote-helpers(7)).
		return "it names a transport of its own: " + redact.Short(value, 60)
	}
	return ""
}

// steps lists the rebase commands that run no program (git-rebase(1)).
var steps = strings.Fields("pick p reword r edit e squash s fixup f drop d break b label l reset t merge m update-ref u noop")

func checkTodo(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.Fields(line)
		if len(words) > 0 && words[0][0] != '#' && !slices.Contains(steps, words[0]) {
			return "git rebase --continue would run commands that it lists: " + redact.Short(line, 60) + " (end the rebase within the call, or with git rebase --abort)"
		}
	}
	return ""
}

// strategies lists git's own merge strategies (git-merge(1)). For others git runs a program of that name, which is in
// the work tree if the name contains a slash.
var strategies = []string{"", "ort", "recursive", "resolve", "octopus", "ours", "subtree"}

const todo = "git-rebase-todo"

// checkResumed returns why git must not continue from a file of an interrupted operation, or "".
func checkResumed(name, text string) string {
	strategy := ""
	switch name {
	case todo:
		return checkTodo(text)
	case "strategy":
		strategy = strings.TrimSpace(text)
	case "opts":
		for key, value := range settings(text) {
			switch {
			case key == "", strings.HasSuffix(value, "\\"):
				return "it has a line that is not understood: " + redact.Short(value, 60)
			case key == "options.strategy" && !slices.Contains(strategies, value):
				strategy = value
			}
		}
	}
	if slices.Contains(strategies, strategy) {
		return ""
	}
	return "git would run a program to merge, which it names: " + redact.Short(strategy, 60) + " (use one of git's own strategies)"
}

func checkHgrc(text string) string {
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		name, value, set := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		isDefault := set && (name == "default" || name == "default-push")
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line == "[paths]":
			section = line
		case section == "" || !isDefault || strings.ContainsAny(value, ";|&`$"):
			return "it has a line that is not allowed: " + redact.Short(line, 60)
		}
	}
	return ""
}

// leadsTo returns the directory that a .git file names (gitrepository-layout(5)), or "".
func leadsTo(dir, text string) string {
	target, ok := strings.CutPrefix(strings.TrimRight(text, "\r\n"), "gitdir: ")
	if !ok || target == "" || strings.ContainsAny(target, "\n\x00") {
		return ""
	}
	if !filepath.IsAbs(target) {
		target = dir + "/" + target
	}
	return filepath.Clean(target)
}

// named returns the hooks, work tree and included files that a git configuration names.
func named(config string) (hooks, worktree string, included []string) {
	for key, value := range settings(config) {
		switch value = unquote.Replace(value); key {
		case "core.hookspath":
			hooks = value
		case "core.worktree":
			worktree = value
		case "include.path", "includeif.path":
			included = append(included, value)
		}
	}
	return hooks, worktree, included
}
