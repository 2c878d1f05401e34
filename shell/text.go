package shell

import (
	"regexp"
	"strconv"
	"strings"
)

// ansiC decodes the text of $'…'. ok is false where bash and we might disagree.
func ansiC(s string) (text string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		if j := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); j >= 0 {
			out.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[j])
			continue
		}
		m := numbered.FindStringSubmatch(s[i:])
		if m == nil {
			return "", false
		}
		base := 16
		if m[4] != "" {
			base = 8
		}
		n, _ := strconv.ParseUint(strings.Join(m[1:], ""), base, 64) // one of them is not empty
		if n == 0 || n > 0x7e {
			return "", false
		}
		out.WriteByte(byte(n))
		i += len(m[0]) - 1
	}
	return out.String(), true
}

// numbered are \xHH, \NNN, \uHHHH and \UHHHHHHHH without the backslash.
var numbered = regexp.MustCompile(`^(?:x([[:xdigit:]]{1,2})|u([[:xdigit:]]{1,4})|U([[:xdigit:]]{1,8})|([0-7]{1,3}))`)

// maxTrim bounds the texts that ${x%y} is computed for: each end is tried.
const maxTrim = 256

// trim computes ${x#y} and ${x%y}, each with one sign or two, where that is simple.
func trim(op string, v, pattern value) (text string, ok bool) {
	simple := v.known() && pattern.known() && !strings.ContainsAny(pattern.text, `[]\()|`)
	both := v.text + pattern.text
	if !simple || len(both) > maxTrim || strings.ContainsFunc(both, func(r rune) bool { return r >= 0x80 }) {
		return "", false
	}
	var expr strings.Builder
	for _, c := range pattern.text {
		expr.WriteString(map[rune]string{'*': ".*", '?': "."}[c])
		if c != '*' && c != '?' {
			expr.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	whole := regexp.MustCompile("(?s)^(?:" + expr.String() + ")$")
	for i := range len(v.text) + 1 {
		n := i // letters that are cut off
		if len(op) == 2 {
			n = len(v.text) - i
		}
		if op[0] == '#' {
			if whole.MatchString(v.text[:n]) {
				return v.text[n:], true
			}
		} else if whole.MatchString(v.text[len(v.text)-n:]) {
			return v.text[:len(v.text)-n], true
		}
	}
	return v.text, true
}

func itoa(n int) string { return strconv.Itoa(n) }

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1 << 30
	}
	return n
}
