package shell

import "strings"

// ansiC decodes the text of $'…'. ok is false for escapes it does not know, and
// for those whose result bash and we might disagree on.
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
		n, size := escapeNumber(s[i:])
		if size == 0 || n == 0 || n > 0x7e {
			return "", false
		}
		out.WriteByte(byte(n))
		i += size - 1
	}
	return out.String(), true
}

// escapeNumber reads \xHH, \NNN, \uHHHH or \UHHHHHHHH without the backslash.
func escapeNumber(s string) (n, size int) {
	base, most, start := 8, 3, 0
	switch s[0] {
	case 'x':
		base, most, start = 16, 2, 1
	case 'u':
		base, most, start = 16, 4, 1
	case 'U':
		base, most, start = 16, 8, 1
	}
	for size = start; size < len(s) && size-start < most; size++ {
		d := strings.IndexByte("0123456789abcdef", s[size]|0x20)
		if s[size] <= '9' {
			d = int(s[size]) - '0'
		}
		if d < 0 || d >= base {
			break
		}
		n = n*base + d
	}
	if size == start {
		return 0, 0
	}
	return n, size
}
