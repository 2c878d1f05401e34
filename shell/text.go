package shell

import (
	"regexp"
	"strconv"
	"strings"
)

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
		digits, base := number(s[i:])
		n, err := strconv.ParseUint(digits, base, 64)
		if err != nil || n == 0 || n > 0x7e {
			return "", false
		}
		i += strings.Index(s[i:], digits) + len(digits) - 1
		out.WriteByte(byte(n))
	}
	return out.String(), true
}

func number(s string) (digits string, base int) {
	most, base, allowed := 3, 8, "01234567"
	if i := strings.IndexByte("xuU", s[0]); i >= 0 {
		s, most, base, allowed = s[1:], 2<<i, 16, "0123456789abcdefABCDEF"
	}
	n := 0
	for n < min(most, len(s)) && strings.IndexByte(allowed, s[n]) >= 0 {
		n++
	}
	return s[:n], base
}

const maxTrim = 256

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
		n := i
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

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1 << 30
	}
	return n
}
