// Package config reads the configuration and the policy files. It is strict: an unknown key is an error with file,
// line and column. It opens no sockets and makes no decisions.
package config

import (
	"fmt"
	"strings"
)

// Error is a fault in a file. Line and Column count from 1.
type Error struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"` // what is wrong and what was expected
	Excerpt string `json:"-"`       // the line, and a caret below the column
}

// Error returns the position, the message and the excerpt.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	if e.Excerpt == "" {
		return s
	}
	return s + "\n" + e.Excerpt
}

const maxExcerpt = 200

func newError(file string, lines []string, at position, message string) *Error {
	e := &Error{File: file, Line: at.line, Column: at.column, Message: message}
	if at.line < 1 || at.line > len(lines) {
		return e
	}
	line := []rune(strings.TrimRight(lines[at.line-1], "\r"))
	if len(line) > maxExcerpt {
		line = append(line[:maxExcerpt:maxExcerpt], '…')
	}
	before := line[:min(max(at.column-1, 0), len(line))]
	// Tabs are kept to align the caret.
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(before))
	number := fmt.Sprintf("%5d | ", at.line)
	e.Excerpt = number + string(line) + "\n" + strings.Repeat(" ", len(number)-2) + "| " + pad + "^"
	return e
}
