//go:build linux

package suite

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Quote returns s as one word of a shell.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ReadLines reads each line of files that is not empty; place is FILE:LINE.
func ReadLines[T any](read func(place string, text []byte) T, paths []string) ([]T, error) {
	var out []T
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the cases: %w", err)
		}
		n := 0
		for text := range bytes.Lines(src) {
			if n++; len(bytes.TrimSpace(text)) > 0 {
				out = append(out, read(fmt.Sprintf("%s:%d", path, n), bytes.TrimSpace(text)))
			}
		}
	}
	return out, nil
}
