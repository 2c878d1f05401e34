package programs

import "slices"

// temporary handles mktemp: without a template, or with -t, the file is in the temporary directory,
// /tmp unless TMPDIR is set.
func (c *Command) temporary() {
	c.Known = true
	dir, below := Word{}, false
	many := slices.ContainsFunc(c.Words, func(w Word) bool { return w.Many })
	covered := len(c.Words) < 2
	for _, f := range c.Flags {
		switch {
		case f.Dynamic || f.spec == nil:
			return
		case (f.Name == "-p" || f.Name == "--tmpdir") && f.HasValue:
			dir = f.Value
			covered = covered && !dir.Dynamic
		}
		many = many || f.Value.Many
		below = below || f.Name == "-t" || f.Name == "-p" || f.Name == "--tmpdir"
	}
	template := Word{Text: "tmp.XXXXXXXXXX"}
	if len(c.Words) > 0 {
		template = c.Words[len(c.Words)-1]
	} else {
		below = true
	}
	if dir.Text == "" && below {
		dir.Text = "/tmp"
	}
	if dir.Text != "" {
		template = Word{Text: dir.Text + "/" + template.Text, Dynamic: template.Dynamic || dir.Dynamic}
	}
	c.Operands = []Operand{{Word: template, Kind: Write}}
	if covered && !many {
		c.Covers = CoversWrite
	}
}
