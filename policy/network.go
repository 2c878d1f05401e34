package policy

import (
	"net/url"
	"slices"
	"strings"
)

// netUsage describes the commands whose arguments name hosts.
func netUsage(name string, argv []Word) (Usage, bool) {
	u := Usage{Known: true}
	switch name {
	case "git":
		return gitNetUsage(argv)
	case "curl", "wget":
		for i := 1; i < len(argv); i++ {
			u.Operands = append(u.Operands, fetchOperand(argv, &i)...)
		}
	default:
		for _, w := range argv[1:] {
			if !strings.HasPrefix(w.Text, "-") {
				u.Operands = append(u.Operands, Operand{Word: w, Kind: Net})
			}
		}
		if name == "scp" || name == "rsync" {
			u.Operands = copies(u.Operands, argv)
		}
	}
	return u, true
}

// copies describes the operands of scp and rsync: the last is where the others go.
func copies(operands []Operand, argv []Word) (out []Operand) {
	if len(operands) == 0 {
		return nil
	}
	into, sources := operands[len(operands)-1], operands[:len(operands)-1]
	_, away, _ := remotePath(into.Word.Text)
	for _, o := range sources {
		_, isHost, path := remotePath(o.Word.Text)
		if !isHost {
			o.Kind, o.Tree = Read, true
		}
		if out = append(out, o); !away {
			out = append(out, copied(Word{path, o.Word.Dynamic}, into.Word, keepsFolders(argv))...)
		}
	}
	switch {
	case away:
		out = append(out, into)
	case len(sources) == 0:
		out = append(out, Operand{Word: into.Word, Kind: Write, Tree: true})
	}
	return out
}

// copied says what is written when a source is copied into a folder: its name there,
// or all of the folder where what is in the source is meant.
func copied(source, into Word, keepsFolders bool) []Operand {
	name := baseName(strings.TrimRight(source.Text, "/"))
	if keepsFolders || source.Dynamic || strings.HasSuffix(source.Text, "/") || name == "" || name == "." || name == ".." {
		return []Operand{{Word: into, Kind: Write, Tree: true}}
	}
	return []Operand{{Word: into, Kind: Write}, {Word: Word{into.Text + "/" + name, into.Dynamic}, Kind: Write, Tree: true}}
}

// keepsFolders reports whether flags of rsync may keep the folders of its sources, or
// name more of them.
func keepsFolders(argv []Word) bool {
	return slices.ContainsFunc(argv[1:], func(w Word) bool {
		short := strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--")
		return w.Dynamic && w.Text == "" || short && strings.Contains(w.Text, "R") || strings.HasPrefix(w.Text, "--rel") || strings.HasPrefix(w.Text, "--files-from")
	})
}

// fetchFlags are the flags of curl and wget that take a value, with what the
// value is: ':' text, '<' a file that is read, '>' a file that is written.
var fetchFlags = map[string]byte{
	"-o": '>', "--output": '>', "-T": '<', "--upload-file": '<', "-K": '<', "--config": '<', "-D": '>', "--dump-header": '>',
	"-c": '>', "--cookie-jar": '>', "-d": 'h', "--data": 'h', "--data-ascii": 'h', "--data-binary": 'h', "--data-raw": ':', "--data-urlencode": '@', "--json": 'h',
	"-F": '@', "--form": '@', "-H": 'h', "--header": 'h', "-X": ':', "--request": ':', "-A": ':', "-e": ':', "-u": ':', "--user": ':',
	"-b": '@', "--cookie": '@', "-m": ':', "--max-time": ':', "--connect-timeout": ':', "--retry": ':', "-w": '@', "--write-out": '@',
	"-r": ':', "-E": '<', "--cert": '<', "--key": '<', "--cacert": '<', "--output-dir": '>', "--trace": '>', "--trace-ascii": '>',
	"--stderr": '>', "--netrc-file": '<', "--url": 'n', "-x": 'n', "--proxy": 'n', "--resolve": ':', "--connect-to": ':', "--max-redirs": ':',
	"--output-document": '>', "-P": '>', "--directory-prefix": '>', "-i": '<', "--input-file": '<', "--post-file": '<', "--body-file": '<',
	"--method": ':', "-U": ':', "-t": ':', "--tries": ':', "--timeout": ':', "-a": '>', "--append-output": '>', "--libcurl": '>',
	"--unix-socket": '>', "--abstract-unix-socket": '>', "--interface": ':', "-C": ':', "-y": ':', "-Y": ':', "-z": ':', "-Q": ':', "--limit-rate": ':',
}

// fetchOperand reads the word argv[*i], and the value after it if it has one.
func fetchOperand(argv []Word, i *int) []Operand {
	w := argv[*i]
	if w.Dynamic && w.Text == "" || !strings.HasPrefix(w.Text, "-") {
		return []Operand{{Word: w, Kind: Net}}
	}
	name, value, has := strings.Cut(w.Text, "=")
	if !strings.HasPrefix(w.Text, "--") && len(w.Text) > 2 {
		name, value = w.Text[:2], w.Text[2:]
		has = true
	}
	kind := fetchKind(baseName(argv[0].Text), name)
	if kind == 0 {
		return nil
	}
	if kind == '?' {
		return []Operand{{Word: Word{Dynamic: true}, Kind: Write}}
	}
	v := Word{value, w.Dynamic}
	if !has {
		if *i++; *i >= len(argv) {
			return nil
		}
		v = argv[*i]
	}
	return fetchValue(kind, v)
}

// fetchKind says what the value of a flag is: 0 for none, '?' for a flag that
// writes a file named by the server.
func fetchKind(program, name string) byte {
	switch {
	case program == "wget" && name == "-O":
		return '>'
	case name == "-O" || name == "--remote-name" || name == "--remote-name-all":
		return '?'
	case program == "curl" && (name == "-i" || name == "-P" || name == "-a" || name == "-t"):
		return 0 // wget's of the same name take a value
	case program == "wget" && name == "-U":
		return ':'
	}
	return fetchFlags[name]
}

// fetchValue describes the value of a flag of curl or wget.
func fetchValue(kind byte, v Word) []Operand {
	switch kind {
	case '<':
		return []Operand{{Word: v, Kind: Read}}
	case '>':
		if v.Text == "-" && !v.Dynamic {
			return nil
		}
		return []Operand{{Word: v, Kind: Write}}
	case 'n':
		return []Operand{{Word: v, Kind: Net}}
	case '@':
		_, file, found := strings.Cut(v.Text, "@")
		if found || v.Dynamic {
			return []Operand{{Word: Word{file, v.Dynamic}, Kind: Read}}
		}
	case 'h':
		if file, found := strings.CutPrefix(v.Text, "@"); found || v.Dynamic && v.Text == "" {
			return []Operand{{Word: Word{file, v.Dynamic}, Kind: Read}}
		}
	}
	return nil
}

// gitNetUsage describes git's subcommands that are given a repository.
func gitNetUsage(argv []Word) (Usage, bool) {
	words := skipGlobals("git", argv[1:])
	if len(words) == 0 {
		return Usage{}, false
	}
	switch words[0].Text {
	case "clone", "fetch", "pull", "push", "ls-remote", "submodule", "remote":
	default:
		return Usage{}, false
	}
	u := Usage{Known: true}
	for _, w := range words[1:] {
		if strings.Contains(w.Text, "://") && strings.HasPrefix(w.Text, "-") {
			u.Operands = append(u.Operands, hostWords(w)...)
		} else if _, isHost, _ := remotePath(w.Text); isHost {
			u.Operands = append(u.Operands, Operand{Word: w, Kind: Net})
		} else if words[0].Text == "clone" && !strings.HasPrefix(w.Text, "-") {
			u.Operands = append(u.Operands, Operand{Word: w, Kind: Read, Tree: true})
		}
	}
	switch {
	case words[0].Text == "clone":
		u.Operands = append(u.Operands, clonedTo(words[1:])...)
	case words[0].Text == "submodule" && len(words) > 2 && words[1].Text == "add":
		u.Operands = append(u.Operands, clonedTo(words[2:])...)
	}
	return u, len(u.Operands) > 0
}

// clonedTo returns the folder that "git clone" makes, or "git submodule add": its last operand, which is
// the repository where there is only one, and then the last part of its name.
func clonedTo(words []Word) []Operand {
	operands := operandsOf(words)
	if len(operands) == 0 {
		return nil
	}
	w := operands[len(operands)-1]
	if before, _, _ := strings.Cut(w.Text, "://"); len(before) < len(w.Text) || strings.Contains(w.Text, ":") || len(operands) == 1 {
		name := strings.TrimSuffix(strings.TrimRight(w.Text, "/"), ".git")
		name = name[strings.LastIndexAny(name, "/:")+1:]
		w = Word{name, w.Dynamic || name == ""}
	}
	return []Operand{{Word: w, Kind: Write, Tree: true}}
}

// gitSettings returns the hosts that stand before git's subcommand, as in
// -c url.https://….
func gitSettings(argv []Word) (out []Operand) {
	for _, w := range argv[1 : len(argv)-len(skipGlobals("git", argv[1:]))] {
		out = append(out, hostWords(w)...)
	}
	return out
}

// remotePath splits host:path and URLs, as git and scp read them.
func remotePath(s string) (host string, isHost bool, path string) {
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil {
			return "", true, ""
		}
		return u.Hostname(), true, u.Path
	}
	before, path, found := strings.Cut(s, ":")
	if !found || strings.Contains(before, "/") || before == "" {
		return "", false, s
	}
	return before[strings.LastIndexByte(before, '@')+1:], true, path
}
