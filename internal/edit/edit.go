// Package edit changes single settings in configuration files of other programs.
//
// It changes the text of a file, so that comments, order and layout stay as their owner
// wrote them. It reads JSON with comments and trailing commas, TOML, and YAML in block style. What it cannot
// read, and what it could change only by guessing, it refuses.
package edit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Format is the language of a file.
type Format string

// The formats.
const (
	JSON Format = "json"
	TOML Format = "toml"
	YAML Format = "yaml"
)

// A Path leads to a setting through the keys of the tables around it. In TOML the element
// "[id=x]" after the name of an array of tables selects the table whose key id is x.
type Path []string

// String returns the keys with dots between them.
func (p Path) String() string { return strings.Join(p, ".") }

// document is a parsed text. Its methods return the text after one change.
type document interface {
	// get returns the text of the value at a path, and how many leading elements of the
	// path exist: all where there is a value.
	get(p Path) (raw string, depth int, err error)
	// set gives the setting at a path a value, which is JSON or raw text of the format.
	set(p Path, value string, raw bool) (string, error)
	// remove removes the setting at a path.
	remove(p Path) (string, error)
	// hollow reports whether there is a table at a path that has no settings.
	hollow(p Path) bool
}

// arrays is a document whose arrays can be changed: one in JSON.
type arrays interface {
	// items are the texts of the items of the array at a path.
	items(p Path) ([]string, error)
	// include appends an item, given as JSON; exclude removes one by its index.
	include(p Path, item string) (string, error)
	exclude(p Path, item int) (string, error)
}

func parse(f Format, text string) (document, error) {
	switch f {
	case TOML:
		return parseTOML(text)
	case YAML:
		return parseYAML(text)
	}
	return parseJSON(text)
}

// A Change assigns a value to a setting.
type Change struct {
	Path    Path
	Value   any  // what encoding/json can write
	Include bool // the array at Path is to have Value among its items
}

// Done is how a change was made, for Undo.
type Done struct {
	Path    Path    `json:"path"`
	Include bool    `json:"include,omitempty"`
	Wrote   string  `json:"wrote"`         // the text of the value as it was written
	Had     *string `json:"had,omitempty"` // the text before; nil = there was none
	Depth   int     `json:"depth"`         // how many elements of the path there were
}

// Apply makes changes in a text and returns the new text and what was done; nothing for a
// change that the text has already.
func Apply(f Format, text string, changes []Change) (string, []Done, error) {
	var done []Done
	for _, c := range changes {
		d, err := parse(f, text)
		if err != nil {
			return "", nil, err
		}
		value, err := json.Marshal(c.Value)
		if err != nil {
			return "", nil, err
		}
		one := Done{Path: c.Path, Include: c.Include}
		next, err := one.apply(f, d, text, string(value))
		if err != nil {
			return "", nil, fmt.Errorf("cannot set %s: %w", c.Path, err)
		}
		if next != text {
			done = append(done, one)
		}
		text = next
	}
	return text, done, nil
}

func (o *Done) apply(f Format, d document, text, value string) (string, error) {
	raw, depth, err := d.get(o.Path)
	if err != nil {
		return "", err
	}
	o.Depth = depth
	ok := depth == len(o.Path)
	if o.Include && ok {
		a, at, err := o.find(f, d, value)
		if err != nil || at >= 0 {
			return text, err
		}
		o.Wrote = value
		return a.include(o.Path, value)
	}
	if o.Include {
		o.Include, value = false, "["+value+"]"
	}
	if ok && same(f, raw, value) {
		return text, nil
	}
	if ok {
		o.Had = &raw
	}
	next, err := d.set(o.Path, value, false)
	if err != nil {
		return "", err
	}
	after, err := parse(f, next)
	if err != nil {
		return "", fmt.Errorf("the result could not be read: %w", err)
	}
	o.Wrote, _, err = after.get(o.Path)
	return next, err
}

func (o *Done) find(f Format, d document, value string) (a arrays, at int, err error) {
	a, ok := d.(arrays)
	if !ok {
		return nil, -1, fmt.Errorf("arrays in %s are not changed here", f)
	}
	items, err := a.items(o.Path)
	return a, slices.IndexFunc(items, func(item string) bool { return same(f, item, value) }), err
}

// Undo takes changes back in a text that others have changed since, the latest first. What
// has another value now stays; kept names it.
func Undo(f Format, text string, done []Done) (after string, kept []Path, err error) {
	for i := len(done) - 1; i >= 0; i-- {
		next, ok, err := done[i].undo(f, text)
		if err != nil {
			return "", nil, fmt.Errorf("cannot take back %s: %w", done[i].Path, err)
		}
		if !ok {
			kept = append(kept, done[i].Path)
			continue
		}
		text = next
	}
	return text, kept, nil
}

// undo reverts one change. It reports false if the setting has another value now.
func (o *Done) undo(f Format, text string) (string, bool, error) {
	d, err := parse(f, text)
	if err != nil {
		return "", false, err
	}
	raw, depth, err := d.get(o.Path)
	if err != nil || depth < len(o.Path) {
		return text, true, err // it is gone already
	}
	switch {
	case o.Include:
		a, at, err := o.find(f, d, o.Wrote)
		if err == nil && at >= 0 {
			text, err = a.exclude(o.Path, at)
		}
		return text, true, err
	case !same(f, raw, o.Wrote):
		return text, false, nil
	case o.Had != nil:
		text, err = d.set(o.Path, *o.Had, true)
		return text, true, err
	}
	if text, err = d.remove(o.Path); err != nil {
		return "", false, err
	}
	text, err = prune(f, text, o.Path, o.Depth)
	return text, true, err
}

func prune(f Format, text string, p Path, depth int) (string, error) {
	for n := len(p) - 1; n > depth; n-- {
		d, err := parse(f, text)
		if err != nil {
			return "", err
		}
		if !d.hollow(p[:n]) {
			break
		}
		if text, err = d.remove(p[:n]); err != nil {
			return "", err
		}
	}
	return text, nil
}

func same(f Format, a, b string) bool {
	if a == b {
		return true
	}
	x, errX := value(f, a)
	y, errY := value(f, b)
	return errX == nil && errY == nil && x == y
}

// value is the canonical form of a value: JSON without comments and with sorted keys.
func value(f Format, raw string) (string, error) {
	if f == YAML {
		return canonicalYAML(raw)
	}
	if f == TOML {
		if s, ok := tomlString(raw); ok {
			raw = quote(s)
		}
	}
	plain, err := hujson.Standardize([]byte(raw))
	if err != nil {
		return "", err
	}
	var v any
	if err := json.Unmarshal(plain, &v); err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	return string(text), err
}

// Value decodes the value at a path into v. It reports false when there is none.
func Value(f Format, text string, p Path, v any) (bool, error) {
	d, err := parse(f, text)
	if err != nil {
		return false, err
	}
	raw, depth, err := d.get(p)
	if depth < len(p) || err != nil {
		return false, err
	}
	canonical, err := value(f, raw)
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal([]byte(canonical), v)
}

func quote(s string) string {
	text, _ := json.Marshal(s) // a string can be written
	return string(text)
}

// blank is the text with blanks in place of a byte order mark.
func blank(text string) string {
	if rest, marked := strings.CutPrefix(text, "\ufeff"); marked {
		return "   " + rest
	}
	return text
}

func place(text string, at int) string {
	at = min(at, len(text))
	return fmt.Sprintf("line %d", 1+strings.Count(text[:at], "\n"))
}

// lineEnd is where the line of a position ends, before its newline.
func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }
