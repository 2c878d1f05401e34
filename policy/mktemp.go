package policy

import "strings"

// mktempUsage reads mktemp's words: without a template, or with -t, the file lies in
// the folder for temporary files, which is /tmp unless TMPDIR says otherwise. covered
// is false for flags that are not known.
func mktempUsage(words []Word) (u Usage, covered bool) {
	u = Usage{Known: true}
	dir, template := "", Word{Text: "tmp.XXXXXXXXXX"}
	below, given := false, 0
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch value, tmpdir := strings.CutPrefix(w.Text, "--tmpdir="); {
		case w.Dynamic && (w.Text == "" || w.Text[0] == '-'):
			return u, false
		case w.Text == "-p" && i+1 < len(words) && !words[i+1].Dynamic:
			i++
			dir, below = words[i].Text, true
		case tmpdir && !w.Dynamic:
			dir, below = value, true
		case w.Text == "-t", w.Text == "--tmpdir":
			below = true
		case isField("-d -q -u -dq -qd --directory --quiet --dry-run", w.Text) || strings.HasPrefix(w.Text, "--suffix="):
		case strings.HasPrefix(w.Text, "-"):
			return u, false
		default:
			template, given = w, given+1
		}
	}
	if dir == "" && (below || given == 0) {
		dir = "/tmp"
	}
	if dir != "" {
		template.Text = dir + "/" + template.Text
	}
	u.Operands = []Operand{{Word: template, Kind: Write}}
	return u, given < 2
}
