// Package spell finds the name that a misspelt one was meant to be.
package spell

import "strings"

// Nearest returns the candidate that word was probably meant to be, or "".
func Nearest(word string, candidates []string) string {
	best, distance := "", len(word)/3+2
	for _, c := range candidates {
		if d := Distance(strings.ToLower(word), c); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// Distance counts the insertions, deletions and substitutions of bytes between a and b
// (Levenshtein). Both must be short.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
