package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/internal/spell"
)

type scalar struct {
	At     position
	text   string
	set    bool
	origin string // name of a flag or variable; "" = the file
}

func (s *scalar) UnmarshalText(text []byte) error {
	s.text, s.set = string(text), true
	return nil
}

func (l *loader) fail(s scalar, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	switch {
	case s.origin != "":
		l.faults = append(l.faults, fmt.Errorf("%s: %s", s.origin, message))
	case s.At == position{}: // a default that this machine does not support
		l.faults = append(l.faults, errors.New(message))
	default:
		l.faults = append(l.faults, newError(l.file, strings.Split(string(l.src), "\n"), s.At, message))
	}
}

// text reads a setting. It must not be blank if it is set.
func (l *loader) text(dst *string, s scalar, key string) {
	if !s.set {
		return
	}
	if strings.TrimSpace(s.text) == "" || strings.ContainsRune(s.text, 0) {
		l.fail(s, "%s is empty: give it a value or leave it out", key)
		return
	}
	*dst = s.text
}

func (l *loader) texts(list []scalar, key string) []string {
	var out []string
	for i, s := range list {
		out = append(out, "")
		l.text(&out[i], s, fmt.Sprintf("%s[%d]", key, i))
	}
	return out
}

func (l *loader) oneOf(dst *string, s scalar, key string, words ...string) {
	if !s.set {
		return
	}
	if slices.Contains(words, s.text) {
		*dst = s.text
		return
	}
	hint := ""
	if w := spell.Nearest(s.text, words); w != "" {
		hint = fmt.Sprintf("; did you mean %q?", w)
	}
	l.fail(s, "%s cannot be %q: expected %s%s", key, s.text, either(words), hint)
}

// number reads a count, or a size in bytes if the key ends in _bytes.
func (l *loader) number(dst *int64, v scalar, s setting) {
	if !v.set {
		return
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	ok, expected := err == nil, "a whole number such as 64"
	if strings.HasSuffix(s.key, "_bytes") {
		n, ok = parseSize(v.text)
		expected = "bytes as a whole number, or a size such as 64KiB, 16MiB, 4GiB"
	}
	lowText, highText, _ := strings.Cut(s.check, " ")
	least := strings.TrimPrefix(lowText, "0|")
	low, _ := parseSize(least)
	high, _ := parseSize(highText)
	switch {
	case !ok:
		l.fail(v, "%s cannot be %q: expected %s", s.key, v.text, expected)
	case n == 0 && least != lowText:
		*dst = 0
	case n < low && least != lowText:
		l.fail(v, "%s is %s: expected 0, which is unlimited, or at least %s", s.key, v.text, least)
	case n < low:
		l.fail(v, "%s is %s: expected at least %s", s.key, v.text, least)
	case high > 0 && n > high:
		l.fail(v, "%s is %s: expected at most %s", s.key, v.text, highText)
	default:
		*dst = n
	}
}

func (l *loader) duration(dst *time.Duration, s scalar, key string, low, high time.Duration) {
	if !s.set {
		return
	}
	d, err := time.ParseDuration(s.text)
	switch {
	case err != nil:
		l.fail(s, "%s cannot be %q: expected a duration with a unit, such as 500ms, 120s or 10m", key, s.text)
	case d < low:
		l.fail(s, "%s is %s: expected at least %s", key, d, low)
	case d > high:
		l.fail(s, "%s is %s: expected at most %s", key, d, high)
	default:
		*dst = d
	}
}

// parseSize parses "1024", "64KiB" and "16 MiB" as bytes. It rejects KB and MB, which are ambiguous.
func parseSize(text string) (int64, bool) {
	digits := strings.TrimRight(text, "KMGTiB ")
	unit, known := map[string]int64{
		"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}[strings.TrimSpace(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	isNumber := err == nil && n >= 0
	if !known || !isNumber || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}
