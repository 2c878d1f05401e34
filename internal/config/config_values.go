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

func (l *loader) fail(s scalar, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	switch {
	case s.origin != "":
		l.faults = append(l.faults, fmt.Errorf("%s: %s", s.origin, message))
	case s.At == place{}: // a default does not fit this machine
		l.faults = append(l.faults, errors.New(message))
	default:
		l.faults = append(l.faults, newError(l.file, strings.Split(string(l.src), "\n"), s.At, message))
	}
}

// text reads a setting that must not be blank when it is written.
func (l *loader) text(dst *string, s scalar, key string) {
	if !s.set {
		return
	}
	if strings.TrimSpace(s.text) == "" || strings.ContainsRune(s.text, 0) {
		l.fail(s, "%s is empty: give a value or remove the line", key)
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

func (l *loader) word(dst *string, s scalar, key string, words ...string) {
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

// truth reads true or false, and none of YAML's older spellings of them.
func (l *loader) truth(s scalar, key string) bool {
	v := "false"
	l.word(&v, s, key, "true", "false")
	return v == "true"
}

// bounds of a number; the zero value of max means no upper bound.
type bounds struct{ min, max int64 }

func (l *loader) count(dst *int64, s scalar, key string, b bounds) {
	if s.set {
		n, err := strconv.ParseInt(s.text, 10, 64)
		l.number(dst, s, key, n, err == nil, "a whole number such as 64", b)
	}
}

func (l *loader) size(dst *int64, s scalar, key string, b bounds) {
	if s.set {
		n, ok := parseSize(s.text)
		l.number(dst, s, key, n, ok, "bytes as a whole number, or a size such as 64KiB, 16MiB, 4GiB", b)
	}
}

func (l *loader) number(dst *int64, s scalar, key string, n int64, ok bool, expected string, b bounds) {
	switch {
	case !ok:
		l.fail(s, "%s cannot be %q: expected %s", key, s.text, expected)
	case n < b.min:
		l.fail(s, "%s is %d: expected at least %d", key, n, b.min)
	case b.max > 0 && n > b.max:
		l.fail(s, "%s is %d: expected at most %d", key, n, b.max)
	default:
		*dst = n
	}
}

func (l *loader) duration(dst *time.Duration, s scalar, key string, least, most time.Duration) {
	if !s.set {
		return
	}
	d, err := time.ParseDuration(s.text)
	switch {
	case err != nil:
		l.fail(s, "%s cannot be %q: expected a duration with a unit, such as 500ms, 120s or 10m", key, s.text)
	case d < least:
		l.fail(s, "%s is %s: expected at least %s", key, d, least)
	case d > most:
		l.fail(s, "%s is %s: expected at most %s", key, d, most)
	default:
		*dst = d
	}
}

// parseSize reads "1024", "64KiB", "16 MiB". Units of a thousand (KB, MB) are
// refused: half of those who write them mean 1024.
func parseSize(text string) (int64, bool) {
	digits := strings.TrimRight(text, "KMGTiB ")
	unit, known := map[string]int64{
		"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}[strings.TrimSpace(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !known || err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}
