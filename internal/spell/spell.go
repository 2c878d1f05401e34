// Package spell suggests names similar to a misspelt one.
package spell

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the most similar candidate, or "".
func Nearest(word string, candidates []string) string {
	best, distance := "", len(word)/3+2
	for _, c := range candidates {
		if d := Distance(strings.ToLower(word), c); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// Near returns up to three similar candidates, the nearest first. Case counts little.
func Near(word string, candidates []string) []string {
	const most = 3
	type scored struct {
		name     string
		distance int
	}
	var near []scored
	wanted, limit := strings.ToLower(word), min(3, 1+len(word)/3)
	for _, c := range candidates {
		if len(c) > len(wanted)+limit || len(wanted) > len(c)+limit {
			continue
		}
		if d := Distance(strings.ToLower(c), wanted); d <= limit {
			near = append(near, scored{c, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return cmp.Compare(a.distance, b.distance) })
	var list []string
	for _, c := range near[:min(len(near), most)] {
		list = append(list, c.name)
	}
	return list
}

// Distance counts the insertions, deletions and substitutions of bytes between a and b
// (Levenshtein).
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
