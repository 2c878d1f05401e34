package executor

import (
	"maps"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/internal/paths"
)

// EnvOptions selects the variables of BaseEnv. The zero value selects only the defaults.
type EnvOptions struct {
	From      []string          // as from os.Environ
	Pass      []string          // more names to take from From; a final * matches any rest
	Set       map[string]string // values that override From and the defaults
	Default   []string          // like From; Pass and Set override it
	Workspace string            // directories below it are removed from PATH; "" = none
	Others    []string          // more workspaces
}

// BaseEnv returns the sorted environment of commands. It contains only listed variables, and none that NeverPass
// returns.
func BaseEnv(o EnvOptions) []string {
	env := defaults()
	for _, entry := range o.Default {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	for _, entry := range o.From {
		name, value, ok := strings.Cut(entry, "=")
		passes := !isDaemons(name) && Passes(name, o.Pass)
		if ok && passes && !misread(name, value) {
			env[name] = value
		}
	}
	addUser(env)
	addShell(env)
	maps.Copy(env, o.Set)
	maps.DeleteFunc(env, func(name, value string) bool {
		isValid := name != "" && !strings.ContainsAny(name, "=\x00") && !strings.Contains(value, "\x00")
		return !isValid || never(name)
	})
	if env["PATH"] = safePath(env["PATH"], append([]string{o.Workspace}, o.Others...)); env["PATH"] == "" {
		env["PATH"] = "/usr/local/bin:/usr/bin:/bin"
	}
	addGitConfig(env)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// misread reports whether a variable may make the shell decode scripts in an encoding in which a multi-byte character
// includes a following backslash. UTF-8 and encodings of one byte are harmless.
func misread(name, value string) bool {
	return slices.Contains([]string{"LANG", "LC_ALL", "LC_CTYPE"}, name) && value != "" && !harmlessLocale().MatchString(value)
}

var harmlessLocale = lazyregexp.New(`^(?i:C|POSIX|en_[A-Z]+|.*\.utf-?8(@.*)?)$`)

// defaults returns variables with which programs neither ask nor start pagers and editors.
func defaults() map[string]string {
	return map[string]string{
		"LANG": "C.UTF-8", "TERM": "xterm-256color", "TMPDIR": "/tmp",
		"PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat",
		"EDITOR": "false", "VISUAL": "false", "GIT_EDITOR": "false", "GIT_MERGE_AUTOEDIT": "no",
		"GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "never", "GH_PROMPT_DISABLED": "1",
		"SSH_ASKPASS_REQUIRE": "never", "DEBIAN_FRONTEND": "noninteractive",
	}
}

// addUser sets USER and LOGNAME to the user of the daemon unless they are set.
func addUser(env map[string]string) {
	if env["USER"] != "" && env["LOGNAME"] != "" {
		return
	}
	u, err := user.Current()
	if err != nil {
		return
	}
	for _, name := range []string{"USER", "LOGNAME"} {
		if env[name] == "" {
			env[name] = u.Username
		}
	}
}

// addShell sets SHELL unless it is set: bash would look up the user for it, which asks the name service twice.
func addShell(env map[string]string) {
	if path, err := findShell(); err == nil && env["SHELL"] == "" {
		env["SHELL"] = path
	}
}

// addGitConfig overrides the git configuration: no file watchers, no pager, no bare repository hidden in a directory.
// Only this function sets these variables.
func addGitConfig(env map[string]string) {
	env["GIT_CONFIG_COUNT"] = "3"
	for i, kv := range [...][2]string{
		{"core.fsmonitor", "false"},
		{"core.pager", "cat"},
		{"safe.bareRepository", "explicit"},
	} {
		n := string(rune('0' + i))
		env["GIT_CONFIG_KEY_"+n], env["GIT_CONFIG_VALUE_"+n] = kv[0], kv[1]
	}
}

// Passes reports whether commands get a variable of the daemon, given EnvOptions.Pass.
func Passes(name string, pass []string) bool {
	fixed := []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TERM", "NO_COLOR"}
	for _, p := range append(fixed, pass...) {
		if prefix, rest := strings.CutSuffix(p, "*"); p == name || rest && strings.HasPrefix(name, prefix) {
			return !never(name)
		}
	}
	return false
}

// safePath returns the absolute directories of PATH that are outside of the workspaces.
func safePath(path string, workspaces []string) string {
	var kept []string
	for _, dir := range strings.Split(path, ":") {
		in := func(workspace string) bool { return paths.Within(filepath.Clean(dir), workspace) }
		if filepath.IsAbs(dir) && !slices.ContainsFunc(workspaces, in) {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, ":")
}
