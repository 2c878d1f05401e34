package policy

import "strings"

// Commands that read a tree may read only the files of some names in it.

// filter takes the value of a flag that says which files of a tree are read. Those
// are left out of it when the first such flag names the ones that are not.
func (r *reading) filter(v flag, w Word) {
	switch {
	case v.filter == '+' && !strings.HasPrefix(w.Text, "!"):
		r.parts = append(r.parts, nameEnds(w)...)
	case v.filter == '&' && r.parts == nil:
		r.whole = true
	}
}

// nameEnds returns the ends that names have which a pattern matches, "" for any.
// One that is longer, or has more alternatives, than people write is any: to tell
// them apart takes long.
func nameEnds(w Word) []string {
	long := len(w.Text) > 200 || strings.Count(w.Text, "{") > 2 || strings.Count(w.Text, ",") > 24
	if w.Dynamic || long || strings.ContainsRune(w.Text, '\\') {
		return []string{""}
	}
	choices, err := expandBraces(w.Text)
	if err != nil {
		return []string{""}
	}
	for i, c := range choices {
		choices[i] = c[strings.LastIndexAny(c, "*?[]/")+1:]
	}
	return choices
}

// narrow says of the trees that are read which part is.
func (r *reading) narrow() {
	if !r.whole && len(r.parts) > 0 {
		r.out.operands = inParts(r.out.operands, r.parts, func(o Operand) bool { return o.Tree && o.Part == "" })
	}
}

// maxParts bounds the trees that are told apart by the names of the files in them.
const maxParts = 512

// inParts puts, in the place of some of the trees that are read, the parts of them
// with certain ends of names. Where those are too many it leaves the trees whole.
func inParts(trees []Operand, ends []string, some func(Operand) bool) []Operand {
	if len(ends) > 1 && len(trees)*len(ends) > maxParts {
		ends = []string{""}
	}
	var out []Operand
	for _, o := range trees {
		if o.Kind != Read || !some(o) {
			out = append(out, o)
			continue
		}
		for _, o.Part = range ends {
			out = append(out, o)
		}
	}
	return out
}
