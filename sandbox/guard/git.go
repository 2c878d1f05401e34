package guard

import (
	"path/filepath"
	"regexp"
	"strings"
)

var (
	sectionLine = regexp.MustCompile(`^\[([a-zA-Z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\["\\])*)")?\]$`)
	keyLine     = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9-]*)[ \t]*(?:=(.*))?$`)
	transport   = regexp.MustCompile(`^\s*[a-zA-Z0-9+.-]+::`)
	unquote     = strings.NewReplacer(`"`, "", `\`, "")
)

// harmless are the settings that git itself writes and that run nothing, by
// section and key (git-config(1)); of a section with a name in quotes, such as
// [remote "origin"], by the section alone.
var harmless = map[string]string{
	"core":       " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks worktree sparsecheckout sparsecheckoutcone autocrlf eol safecrlf untrackedcache splitindex commitgraph multipackindex ",
	"extensions": " objectformat refstorage worktreeconfig partialclone compatobjectformat preciousobjects ",
	"remote":     " url fetch pushurl tagopt mirror prune promisor partialclonefilter skipfetchall ",
	"branch":     " remote merge rebase pushremote description autosetuprebase ",
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

// suspectConfig says why a configuration of git is not one that can only do
// harmless things; "" when it is. What is not understood is suspect: git
// understands more than this does.
func suspectConfig(text string) string {
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Trim(line, " \t\r")
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case strings.HasSuffix(line, `\`):
			return "a line goes on in the next one"
		case line[0] == '[':
			m := sectionLine.FindStringSubmatch(line)
			if m == nil {
				return "it has a section that is not understood: " + brief(line)
			}
			section = strings.ToLower(m[1])
			continue
		}
		m := keyLine.FindStringSubmatch(line)
		if m == nil {
			return "it has a line that is not understood: " + brief(line)
		}
		if key := strings.ToLower(m[1]); !strings.Contains(harmless[section], " "+key+" ") {
			return "it sets " + section + "." + key
		}
		// Such a transport runs a program: "ext::sh -c …" (gitremote-helpers(7)).
		if transport.MatchString(unquote.Replace(m[2])) {
			return "it names a transport of its own: " + brief(line)
		}
	}
	return ""
}

func brief(line string) string {
	if len(line) > 60 {
		line = strings.ToValidUTF8(line[:60], "") + "…"
	}
	return line
}

// leadsTo is the folder that a .git file in dir names (gitrepository-layout(5));
// "" when it is no such file.
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

// named are the files and folders, as they are written, which a configuration of git
// has it obey beside its own: hooks of a folder, and configurations that it includes.
func named(config string) (hooks, worktree string, included []string) {
	section := ""
	for line := range strings.SplitSeq(config, "\n") {
		line = strings.Trim(line, " \t\r")
		if m := sectionLine.FindStringSubmatch(line); m != nil {
			section = strings.ToLower(m[1])
			continue
		}
		m := keyLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		value := unquote.Replace(strings.TrimSpace(m[2]))
		switch section + "." + strings.ToLower(m[1]) {
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
