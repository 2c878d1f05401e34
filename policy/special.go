package policy

import (
	"net/url"
	"strings"
)

// Commands whose arguments are a language of their own.

// specialUsage describes the commands that a table of flags cannot.
func specialUsage(argv []Word) (Usage, bool) {
	switch name := trustedName(argv[0].Text); name {
	case "find":
		u, _ := findUsage(argv[1:])
		return u, true
	case "sed":
		u, _, _ := sedUsage(argv[1:])
		return u, true
	case "awk", "gawk", "mawk", "nawk":
		u, _ := awkUsage(argv[1:])
		return u, true
	case "tar":
		return tarUsage(argv[1:]), true
	case "curl", "wget", "git", "ssh", "nc", "ncat", "netcat", "telnet", "scp", "rsync":
		return netUsage(name, argv)
	}
	return Usage{}, false
}

// specialCovered reports whether a preset covers such a command. ok is false for
// commands that the table describes.
func specialCovered(argv []Word, workspace bool) (covered, ok bool) {
	switch trustedName(argv[0].Text) {
	case "find":
		_, safe := findUsage(argv[1:])
		return safe, true
	case "sed":
		_, safe, inPlace := sedUsage(argv[1:])
		return safe && (workspace || !inPlace), true
	case "awk", "gawk", "mawk", "nawk":
		_, safe := awkUsage(argv[1:])
		return safe, true
	case "tar":
		return listsArchive(argv[1:]), true
	}
	return false, false
}

// listsArchive reports whether tar only lists an archive: "tar tf name". A colon
// in the name would mean another host.
func listsArchive(words []Word) bool {
	if len(words) < 2 || words[0].Dynamic || words[1].Dynamic || strings.Contains(words[1].Text, ":") {
		return false
	}
	letters := strings.TrimPrefix(words[0].Text, "-")
	if !strings.HasSuffix(letters, "f") || !strings.Contains(letters, "t") || strings.Trim(letters, "tvzjJf") != "" || strings.HasPrefix(words[1].Text, "-") {
		return false
	}
	for _, w := range words[2:] {
		if w.Dynamic || strings.HasPrefix(w.Text, "-") {
			return false
		}
	}
	return true
}

// tarUsage names the operands of tar as files that may be read or written. The
// first word may be flags without a dash.
func tarUsage(words []Word) Usage {
	u := Usage{Known: true}
	kind := Read
	for i, w := range words {
		text := strings.TrimPrefix(w.Text, "-")
		switch {
		case i == 0 && strings.Trim(text, "tcxrufvzjJpkCa") == "" || strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--"):
			if strings.ContainsAny(text, "cxru") {
				kind = Write
			}
		case strings.HasPrefix(w.Text, "--"):
			if w.Text == "--extract" || w.Text == "--create" || w.Text == "--get" || w.Text == "--append" || w.Text == "--update" {
				kind = Write
			}
			if _, value, ok := strings.Cut(w.Text, "="); ok && strings.Contains(value, "/") {
				u.Operands = append(u.Operands, Operand{Word: Word{value, w.Dynamic}, Kind: Write})
			}
		default:
			u.Operands = append(u.Operands, Operand{Word: w, Kind: kind, Tree: true}, Operand{Word: w, Kind: Read, Tree: true})
		}
	}
	return u
}

// findTests are find's tests and actions that run and change nothing, with the
// number of words that follow them.
var findTests = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-regex": 1, "-iregex": 1, "-regextype": 1,
	"-type": 1, "-xtype": 1, "-size": 1, "-mtime": 1, "-mmin": 1, "-atime": 1, "-amin": 1, "-ctime": 1, "-cmin": 1,
	"-maxdepth": 1, "-mindepth": 1, "-perm": 1, "-user": 1, "-group": 1, "-uid": 1, "-gid": 1, "-links": 1, "-inum": 1,
	"-lname": 1, "-ilname": 1, "-newermt": 1, "-fstype": 1, "-printf": 1, "-D": 1,
	"-print": 0, "-print0": 0, "-ls": 0, "-empty": 0, "-prune": 0, "-depth": 0, "-d": 0, "-xdev": 0, "-mount": 0,
	"-not": 0, "!": 0, "(": 0, ")": 0, "-o": 0, "-or": 0, "-a": 0, "-and": 0, ",": 0, "-true": 0, "-false": 0, "-quit": 0,
	"-readable": 0, "-writable": 0, "-executable": 0, "-nouser": 0, "-nogroup": 0, "-daystart": 0, "-noleaf": 0,
	"-follow": 0, "-L": 0, "-H": 0, "-P": 0, "-O1": 0, "-O2": 0, "-O3": 0,
}

// findUsage reads find's roots and its expression. The command of -exec is not
// judged here: whoever makes the effects gives it as one of its own.
func findUsage(words []Word) (u Usage, safe bool) {
	u, safe = Usage{Known: true}, true
	deletes, roots, inExpression := false, 0, false
	add := func(w Word, kind Kind) {
		u.Operands = append(u.Operands, Operand{Word: w, Kind: kind, Tree: true})
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		takes, known := findTests[w.Text]
		expression := known || strings.HasPrefix(w.Text, "-")
		switch {
		case w.Dynamic && (w.Text == "" || expression):
			safe = false
			add(w, Read)
		case known:
			inExpression = inExpression || w.Text != "-L" && w.Text != "-H" && w.Text != "-P"
			if w.Text == "-L" || w.Text == "-follow" {
				add(Word{Dynamic: true}, Read)
			}
			i += takes
		case w.Text == "-exec" || w.Text == "-execdir" || w.Text == "-ok" || w.Text == "-okdir":
			for i++; i < len(words) && words[i].Text != ";"; i++ {
				if words[i].Text == "+" && words[i-1].Text == "{}" {
					break
				}
			}
		case w.Text == "-delete":
			deletes = true
		case strings.HasPrefix(w.Text, "-newer") || w.Text == "-samefile" || w.Text == "-anewer" || w.Text == "-cnewer":
			i++
		case expression || inExpression:
			safe = false // -fprint, -fls, -files0-from and whatever comes later
			if i+1 < len(words) && strings.HasPrefix(w.Text, "-f") {
				i++
				u.Operands = append(u.Operands, Operand{Word: words[i], Kind: Write})
			}
		default:
			roots++
			add(w, Read)
		}
	}
	if roots == 0 {
		add(Word{Text: "."}, Read)
	}
	if deletes {
		safe = false
		for _, o := range u.Operands {
			add(o.Word, Write)
		}
	}
	return u, safe
}

// sedUsage reads sed's flags, scripts and files.
func sedUsage(words []Word) (u Usage, safe, inPlace bool) {
	u, safe = Usage{Known: true}, true
	script, suffix := false, ""
	var files []Word
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.Dynamic && (w.Text == "" || w.Text[0] == '-'):
			safe = false
			files = append(files, w)
		case w.Text == "-e" || w.Text == "--expression":
			if i++; i < len(words) {
				safe = safe && safeSedScript(words[i])
			}
			script = true
		case strings.HasPrefix(w.Text, "--expression="):
			safe = safe && safeSedScript(Word{strings.TrimPrefix(w.Text, "--expression="), w.Dynamic})
			script = true
		case w.Text == "-i" || w.Text == "--in-place":
			inPlace = true
		case strings.HasPrefix(w.Text, "-i") || strings.HasPrefix(w.Text, "--in-place="):
			inPlace = true
			suffix = strings.TrimPrefix(strings.TrimPrefix(w.Text, "-i"), "--in-place=")
			safe = safe && !strings.ContainsAny(w.Text, "/*")
		case w.Text == "--":
			files = append(files, words[i+1:]...)
			i = len(words)
		case len(w.Text) > 1 && w.Text[0] == '-':
			safe = safe && isSedFlag(w.Text)
			inPlace = inPlace || w.Text[1] != '-' && strings.Contains(w.Text, "i")
			if strings.HasSuffix(w.Text, "e") && w.Text[1] != '-' {
				if i++; i < len(words) {
					safe = safe && safeSedScript(words[i])
				}
				script = true
			}
		default:
			files = append(files, w)
		}
	}
	if !script && len(files) > 0 {
		safe = safe && safeSedScript(files[0])
		files = files[1:]
	}
	for _, w := range files {
		u.Operands = append(u.Operands, Operand{Word: w, Kind: Read})
		if inPlace {
			u.Operands = append(u.Operands, Operand{Word: w, Kind: Write}, Operand{Word: Word{w.Text + suffix, w.Dynamic}, Kind: Write})
		}
	}
	return u, safe, inPlace
}

// isSedFlag reports whether a flag of sed runs and writes nothing by itself.
func isSedFlag(s string) bool {
	switch s {
	case "--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data", "--posix", "--debug":
		return true
	}
	return s[1] != '-' && strings.Trim(s[1:], "nrEsuz") == "" || s[1] != '-' && strings.Trim(s[1:len(s)-1], "nrEsuz") == "" && s[len(s)-1] == 'e'
}

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
			for i := range u.Operands {
				if _, isHost, _ := remotePath(u.Operands[i].Word.Text); !isHost {
					u.Operands[i].Kind = Write
				}
			}
		}
	}
	return u, true
}

// fetchFlags are the flags of curl and wget that take a value, with what the
// value is: ':' text, '<' a file that is read, '>' a file that is written.
var fetchFlags = map[string]byte{
	"-o": '>', "--output": '>', "-O": 0, "-T": '<', "--upload-file": '<', "-K": '<', "--config": '<', "-D": '>', "--dump-header": '>',
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
	wget := baseName(argv[0].Text) == "wget"
	if w.Dynamic && w.Text == "" || !strings.HasPrefix(w.Text, "-") {
		return []Operand{{Word: w, Kind: Net}}
	}
	name, value, has := strings.Cut(w.Text, "=")
	if !strings.HasPrefix(w.Text, "--") && len(w.Text) > 2 {
		name, value, has = w.Text[:2], w.Text[2:], fetchFlags[w.Text[:2]] != 0
	}
	kind := fetchFlags[name]
	switch {
	case wget && name == "-O":
		kind = '>'
	case wget && (name == "-i" || name == "-P" || name == "-a"):
	case name == "-i" || name == "-P" || name == "-a" || name == "-U" && !wget || name == "-t" && !wget:
		kind = 0 // curl's of the same name take no value, or none that matters
	}
	if kind == 0 {
		if name == "-O" || name == "--remote-name" || name == "--remote-name-all" {
			return []Operand{{Word: Word{Dynamic: true}, Kind: Write}}
		}
		return nil
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
		if _, isHost, _ := remotePath(w.Text); isHost {
			u.Operands = append(u.Operands, Operand{Word: w, Kind: Net})
		} else if words[0].Text == "clone" && !strings.HasPrefix(w.Text, "-") {
			u.Operands = append(u.Operands, Operand{Word: w, Kind: Read, Tree: true})
		}
	}
	return u, len(u.Operands) > 0
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
