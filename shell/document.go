package shell

import (
	"regexp"
	"slices"
	"strings"
)

// writes is a line that does nothing but write the quoted document that follows it
// into a file, perhaps after commands that cannot change what cat is or does.
// Whoever reads such a line without a shell reads it as every shell does.
var writes = regexp.MustCompile(`^(?:` + harmless + ` && )*cat (?:>>? ?` + plainPath + ` <<(?:'(\w+)'|"(\w+)")|<<(?:'(\w+)'|"(\w+)") >>? ?` + plainPath + `)$`)

// before is a line that may stand before such a line.
var before = regexp.MustCompile(`^(?:|set -[eux]+(?:o pipefail)?|` + harmless + `(?: && ` + harmless + `)*)$`)

const (
	plainPath = `[A-Za-z0-9_./@%+:,-]+`
	harmless  = `(?:mkdir|touch|cd|rm|ls|echo|pwd)(?: [A-Za-z0-9_./@%+:,=-]+)*`
)

// How many lines are looked at, documents not counted, and how long they may be.
const (
	maxVeiling = 64
	maxVeiled  = 1 << 10
)

// veil returns a script in which the documents at its beginning that only cat reads,
// to write them into a file, are made of dots. Nothing in them is for the shell, and
// two parsers may differ in how they find their ends. All else stays where it is.
func veil(script string) string {
	lines := strings.Split(script, "\n")
	for i, looked := 0, 0; i < len(lines) && looked < maxVeiling && len(lines[i]) <= maxVeiled; i, looked = i+1, looked+1 {
		word := documentOf(lines[i])
		if word == "" && before.MatchString(lines[i]) {
			continue
		}
		body := lines[i+1:]
		end := slices.Index(body, word)
		if word == "" || end < 0 {
			break
		}
		for j, line := range body[:end] {
			body[j] = strings.Repeat(".", len(line))
		}
		i += 1 + end
	}
	return strings.Join(lines, "\n")
}

// documentOf is the word that ends the document of such a line, "" of any other.
func documentOf(line string) string {
	if found := writes.FindStringSubmatch(line); found != nil {
		return strings.Join(found[1:], "") // one of them is not empty
	}
	return ""
}
