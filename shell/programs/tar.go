package programs

import (
	"slices"
	"strings"
)

func (c *Command) tar(words []Word, harmless string) {
	c.Known = true
	operands, ok := packs(words)
	if !ok {
		operands = c.unpacks(harmless)
	}
	c.Operands = operands
	if listsArchive(words) {
		c.Covers = CoversRead
	}
}

// listsArchive reports whether the command is "tar tf name". A colon would name another host.
func listsArchive(words []Word) bool {
	if len(words) < 2 || slices.ContainsFunc(words, func(w Word) bool { return w.Dynamic }) {
		return false
	}
	letters := strings.TrimPrefix(words[0].Text, "-")
	lists := strings.HasSuffix(letters, "f") && strings.Contains(letters, "t") && strings.Trim(letters, "tvzjJf") == ""
	if !lists || words[1].flagLike() || strings.Contains(words[1].Text, ":") {
		return false
	}
	return !slices.ContainsFunc(words[2:], func(w Word) bool { return strings.HasPrefix(w.Text, "-") })
}

// unpacks returns operands and values that are files as written, since the flag that extracts may be anywhere. If all
// flags are harmless, the command only lists an archive.
func (c *Command) unpacks(harmless string) (out []Operand) {
	kind := Read
	if !c.hasFlag("-t") || slices.ContainsFunc(c.Flags, func(f Flag) bool { return f.Dynamic || !IsField(harmless, f.Name) }) {
		kind = Write
	}
	add := func(w Word) {
		if i := strings.IndexAny(w.Text, ":/"); i > 0 && w.Text[i] == ':' { // after a host
			out = append(out, Operand{Word: w, Kind: Net})
		}
		out = append(out, Operand{Word: w, Kind: kind, Tree: true}, Operand{Word: w, Kind: Read, Tree: true})
	}
	for _, f := range c.Flags {
		switch {
		case !f.HasValue:
		case f.spec == nil, strings.HasPrefix(f.spec.values, ">"):
			add(f.Value)
		case strings.HasPrefix(f.spec.values, "<"):
			out = append(out, Operand{Word: f.Value, Kind: Read})
		case f.Name == "--transform": // it determines the written names
			out = append(out, Operand{Word: Word{Dynamic: true}, Kind: kind})
		}
	}
	for _, w := range c.Words {
		add(w)
	}
	return out
}

// attachedToTar returns the archive of -cfFILE, or the directory of -CDIR.
func attachedToTar(w Word) (value Word, ok bool) {
	i := strings.IndexAny(w.Text, "fC")
	if !strings.HasPrefix(w.Text, "-") || i < 0 || i+1 == len(w.Text) {
		return Word{}, false
	}
	return Word{Text: w.Text[i+1:], Dynamic: w.Dynamic}, true
}

// packs describes a tar that only creates an archive. ok is false if it may do more.
func packs(words []Word) (out []Operand, ok bool) {
	p := packer{create: len(words) > 0 && !strings.HasPrefix(words[0].Text, "-")}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.mayBeFlags():
			return nil, false
		case i == 0 && p.create:
			p.create = false
			if !p.letters(w.Text) {
				return nil, false
			}
		case strings.HasPrefix(w.Text, "--"):
			if !p.long(w.Text) {
				return nil, false
			}
		case strings.HasPrefix(w.Text, "-") && w.Text != "-":
			if _, value := attachedToTar(w); value || !p.letters(w.Text[1:]) {
				return nil, false
			}
		default:
			p.members = append(p.members, p.in(w))
			continue
		}
		i += p.values(words[i+1:])
	}
	return p.result()
}

type packer struct {
	create  bool
	removes bool
	archive *Word
	dir     string
	pending string // letters whose values follow
	members []Word
}

// letters reports whether bundled flags only create an archive.
func (p *packer) letters(s string) bool {
	if s == "" || strings.Trim(s, "cvzjJaphfC") != "" {
		return false
	}
	p.create = p.create || strings.Contains(s, "c")
	for _, r := range s {
		if r == 'f' || r == 'C' {
			p.pending += string(r)
		}
	}
	return true
}

func (p *packer) long(s string) bool {
	name, value, has := strings.Cut(s, "=")
	switch name {
	case "--create":
		p.create = true
	case "--file", "--directory":
		letter := map[string]string{"--file": "f", "--directory": "C"}[name]
		if p.pending += letter; has {
			p.values([]Word{{Text: value}})
		}
	case "--exclude", "--owner", "--group", "--mtime", "--sort", "--format":
		return has
	case "--exclude-vcs", "--exclude-vcs-ignores", "--exclude-caches", "--gzip", "--bzip2", "--xz", "--zstd", "--auto-compress",
		"--verbose", "--numeric-owner", "--totals", "--preserve-permissions", "--no-recursion":
	default:
		p.removes = p.removes || len(s) > 3 && strings.HasPrefix("--remove-files", s)
		return p.removes && strings.HasPrefix("--remove-files", s)
	}
	return true
}

func (p *packer) values(words []Word) (taken int) {
	for _, letter := range p.pending {
		if taken >= len(words) || words[taken].Many {
			break
		}
		w := words[taken]
		taken++
		if letter == 'f' {
			p.archive = &w
		} else {
			p.dir = p.in(w).Text
			if w.Dynamic {
				p.members = append(p.members, w)
			}
		}
	}
	p.pending = ""
	return taken
}

func (p *packer) in(w Word) Word {
	if p.dir != "" && !strings.HasPrefix(w.Text, "/") {
		w.Text = p.dir + "/" + w.Text
	}
	return w
}

func (p *packer) result() (out []Operand, ok bool) {
	if !p.create || p.archive == nil || strings.Contains(p.archive.Text, ":") {
		return nil, false
	}
	out = []Operand{{Word: *p.archive, Kind: Write}}
	for _, w := range p.members {
		out = append(out, Operand{Word: w, Kind: Read, Tree: true})
		if p.removes {
			out = append(out, Operand{Word: w, Kind: Write, Tree: true, Link: true})
		}
	}
	return out, true
}
