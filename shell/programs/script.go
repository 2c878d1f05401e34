package programs

import (
	"path"
	"slices"
	"strings"
)

// AsProgram returns the words of the command of which a script is the program, or nil: npm publish for node
// /usr/bin/npm publish and for lib/node_modules/npm/bin/npm-cli.js publish.
func (c *Command) AsProgram(argv []Word) []Word {
	at := 0
	if c.spec.has("script") {
		if at = c.scriptAt(argv); at == 0 {
			return nil
		}
	}
	name := scriptName(argv[at].Text)
	itself := at == 0 && name == baseName(argv[0].Text)
	if argv[at].Dynamic || name == "" || itself {
		return nil
	}
	return append([]Word{{Text: name}}, argv[at+1:]...)
}

// scriptAt returns the index of an interpreter's script, or 0 if it is given code or no script.
func (c *Command) scriptAt(argv []Word) int {
	code := func(f Flag) bool { return c.spec.isCodeFlag(f.Name) }
	if len(c.Words) == 0 || len(c.Runs) > 0 || slices.ContainsFunc(c.Flags, code) {
		return 0
	}
	return max(slices.Index(argv, c.Words[0]), 0)
}

// scriptName returns the name of the program whose file this is. A file with an ending counts only where packages
// have their programs: a script of a project called sync.py is none.
func scriptName(file string) string {
	name := baseName(file)
	end := path.Ext(name)
	if !IsField(".js .cjs .mjs .py .rb .pl .phar", end) {
		return name
	}
	installed := func(dir string) bool { return strings.Contains("/"+file, "/"+dir+"/") }
	if end != ".phar" && !slices.ContainsFunc([]string{"node_modules", "bin", "releases"}, installed) {
		return ""
	}
	name, version := strings.TrimSuffix(name, end), ""
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		name, version = name[:i], name[i+1:]
	}
	if version != "" && version != "cli" && strings.Trim(version, "v.0123456789") != "" {
		name += "-" + version
	}
	return name
}

// isData reports whether a word is a data: URL, which may be code.
func isData(text string) bool {
	return strings.HasPrefix(text, "data:") || strings.Contains(text, "=data:")
}
