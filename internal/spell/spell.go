// Package spell suggests names similar to a misspelt one.
package spell

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the first of Near, or "".
func Nearest(word string, candidates []string) string {
	return append(Near(word, candidates), "")[0]
}

// Near returns up to three similar candidates, nearest first. Differences of case count little.
func Near(word string, candidates []string) []string {
	const most = 3
	distances := map[string]int{}
	var near []string
	wanted, limit := strings.ToLower(word), min(3, 1+len(word)/3)
	for _, c := range candidates {
		if len(c) > len(wanted)+limit || len(wanted) > len(c)+limit {
			continue
		}
		if distances[c] = Distance(strings.ToLower(c), wanted); distances[c] <= limit {
			near = append(near, c)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(distances[a], distances[b]) })
	return near[:min(len(near), most)]
}

// Distance returns the Levenshtein distance in bytes. Both texts must be short.
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
