package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// Below /proc a process finds its own files and those of other processes under
// further names. The kernel resolves such a name for the process that opens it, so
// analysis resolves it by this table, and never by what the daemon sees there.

const procDir = "/proc"

// procKind is what a name below /proc is, or leads to.
type procKind int

const (
	procPlain   procKind = iota // itself
	procAny                     // any file of the machine
	procTop                     // /proc
	procOwn                     // the directory of the process that opens it
	procOther                   // the directory of another process
	procThreads                 // the threads of the process that opens it
	procOthers                  // the threads of another process
	procOpen                    // the open files of the process that opens it
	procOpened                  // the open files of another process, or what one has mapped
	procCwd                     // the working directory
	procRoot                    // the root directory
	procInput                   // standard input
	procOutput                  // standard output or standard error
)

// procNames lists, for each kind of directory, what its names are; "" is any name
// that is not listed.
var procNames = map[procKind]map[string]procKind{
	procTop: {"self": procOwn, "thread-self": procOwn},
	procOwn: {
		"cwd": procCwd, "root": procRoot, "exe": procAny, "fd": procOpen, "map_files": procOpened, "task": procThreads,
	},
	procOther: {
		"cwd": procAny, "root": procAny, "exe": procAny, "fd": procOpened, "map_files": procOpened, "task": procOthers,
	},
	procThreads: {"": procOwn},
	procOthers:  {"": procOther},
	procOpen:    {"0": procInput, "1": procOutput, "2": procOutput, "": procAny},
	procOpened:  {"": procAny},
}

// procLinks lists the symbolic links in /proc to names below it.
var procLinks = map[string]string{"thread-self": "self/task/self", "net": "self/net", "mounts": "self/mounts"}

// devLinks lists the names in /dev that lead into /proc, also where they are no
// symbolic links.
var devLinks = map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}

// inProc reports whether a canonical path is /proc or below it.
func inProc(canonical string) bool { return within(canonical, procDir) }

// procPath resolves a path below /proc, which may hold "." and "..". For procCwd and
// procRoot path is relative to where they lead, and otherwise it is absolute.
func procPath(below string) (kind procKind, path string) {
	kinds, names := []procKind{procTop}, []string{procDir}
	for rest := below; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		top := len(kinds) - 1
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && top == 0:
			return procRoot, rest
		case name == "..":
			kinds, names = kinds[:top], names[:top]
			continue
		}
		if target, ok := procLinks[name]; ok && top == 0 {
			rest = target + "/" + rest
			continue
		}
		switch kind = procName(kinds[top], name); kind {
		case procCwd, procRoot:
			return kind, strings.TrimLeft(rest, "/")
		case procAny:
			return procAny, ""
		case procInput, procOutput:
			if rest != "" {
				return procAny, ""
			}
		}
		kinds, names = append(kinds, kind), append(names, name)
	}
	return kinds[len(kinds)-1], strings.Join(names, "/")
}

// procName returns what a name in a directory below /proc is.
func procName(dir procKind, name string) procKind {
	if kind, ok := procNames[dir][name]; ok {
		return kind
	}
	if dir == procTop && isNumber(name) {
		return procOther
	}
	return procNames[dir][""]
}

// isDirectory reports whether files of processes can be reached from here by names
// that a program finds itself.
func (k procKind) isDirectory() bool { return k >= procTop && k <= procOpened }

// maxProc bounds how often one path leads from /proc back into /proc.
const maxProc = 8

// procEffects yields the effects on a path below /proc: what a process of the
// script finds there. asked is the path that led there.
func (w *walker) procEffects(kind policy.Kind, asked, below string, s *state, yield func(policy.Effect) bool) bool {
	if w.procDepth++; w.procDepth > maxProc {
		w.opaque("a path through /proc leads back to itself", asked)
		w.procDepth--
		return true
	}
	defer func() { w.procDepth-- }()
	e := policy.Effect{Kind: kind, Path: asked}
	switch found, path := procPath(below); {
	case found == procAny:
		w.opaque("a path through /proc may lead to any file", asked)
		return yield(e)
	case found == procInput && kind == policy.Read, found == procOutput && kind == policy.Write:
		return true // what is open there was judged when it was opened
	case found == procInput || found == procOutput:
		w.opaque("an open file is opened again, for something else", asked)
		return yield(e)
	case found == procCwd && s.dirs == nil:
		e.Unknown = true
		return yield(e)
	case found == procCwd || found == procRoot:
		if found == procRoot {
			path = "/" + path
		}
		for e := range w.pathEffects(kind, path, s) {
			if e.Path = asked; !yield(e) {
				return false
			}
		}
		return true
	default:
		e.Canonical = path
		return yield(e)
	}
}

// guardProc records that a tree, or a path of which only the beginning is known,
// may hold any file, since it is below /proc.
func (w *walker) guardProc(o programs.Operand, s *state, source string) {
	if !o.Word.Dynamic && (!o.Tree || o.Part == policy.PartNames) {
		return
	}
	if slices.ContainsFunc(w.fromDirs(o.Word.Text, s), func(canonical string) bool {
		if o.Word.Dynamic {
			return inProc(canonical) || beginsProc(canonical)
		}
		kind, _ := procPath(strings.TrimPrefix(canonical, procDir))
		return inProc(canonical) && kind.isDirectory()
	}) {
		w.opaque("a path through /proc may lead to any file", source)
	}
}

// beginsProc reports whether a path of which only this beginning is known may lead
// into /proc. The root alone says nothing.
func beginsProc(canonical string) bool {
	return len(canonical) > 1 && strings.HasPrefix(procDir, canonical) || len(canonical) > len("/d") && strings.HasPrefix("/dev/fd", canonical)
}

// fromDirs returns the canonical paths that a text names in the directories in which
// the shell may be.
func (w *walker) fromDirs(text string, s *state) (out []string) {
	if strings.HasPrefix(text, "/") {
		return []string{w.canonicalPath(text)}
	}
	for _, dir := range s.dirs {
		if text != "" || inProc(dir) {
			out = append(out, w.canonicalPath(dir+"/"+text))
		}
	}
	return out
}

// canonicalPath resolves a path. What leads through /dev into /proc is below /proc.
func (w *walker) canonicalPath(raw string) string {
	canonical := w.resolve(raw)
	if !strings.HasPrefix(canonical, "/dev/") {
		return canonical
	}
	for name, target := range devLinks {
		if rest, ok := strings.CutPrefix(canonical, name); ok && (rest == "" || rest[0] == '/') {
			return target + rest
		}
	}
	return canonical
}

// globInProc reports whether a pattern may match names below /proc when it runs:
// which processes there are is known only then.
func (w *walker) globInProc(pattern string, s *state) bool {
	before := pattern[:strings.IndexAny(pattern+"*", `*?[\`)]
	before = before[:strings.LastIndexByte(before, '/')+1]
	first, more, _ := strings.Cut(strings.TrimPrefix(pattern, before), "/")
	dirs := s.dirs
	if before != "" {
		dirs = w.fromDirs(before, s)
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		switch dir {
		case "/":
			return strings.Contains(more, "/") && (mayMatch(first, "proc") || mayMatch(first, "dev"))
		case "/dev":
			return more != "" && mayMatch(first, "fd")
		}
		return inProc(dir)
	})
}

// mayMatch reports whether a pattern of one component matches a name, or is one that
// only bash understands.
func mayMatch(pattern, name string) bool {
	ok, err := filepath.Match(pattern, name)
	return ok || err != nil
}
