// Package edit changes single settings in configuration files of other programs. It keeps comments, order and layout.
// It supports JSON with comments and trailing commas, TOML, and YAML in block style, and rejects what it could only
// change by guessing.
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

// A Path is the keys that lead to a setting. In TOML, "[id=x]" after the name of an array of tables selects the table
// with that id.
type Path []string

// String returns the keys with dots between them.
func (p Path) String() string { return strings.Join(p, ".") }

type document interface {
	// get returns the text of a value, and how many leading elements of the path exist.
	get(p Path) (raw string, depth int, err error)
	// set returns the text with a value at a path. The value is JSON or, if raw, in the document's format.
	set(p Path, value string, raw bool) (string, error)
	remove(p Path) (string, error)
	// canPrune reports whether the table at a path contains nothing but an id. It is false for ordinary tables of
	// TOML.
	canPrune(p Path) bool
}

func parse(f Format, text string) (document, error) {
	text = strings.TrimPrefix(text, bom)
	switch f {
	case TOML:
		return parseTOML(text)
	case YAML:
		return parseYAML(text)
	}
	return parseJSON(text)
}

// A Change assigns Value to the setting at Path. With Include, it adds Value to the array there, unless the array
// contains it.
type Change struct {
	Path    Path
	Value   any
	Include bool
}

// Done is a change that was made, for Undo.
type Done struct {
	Path    Path    `json:"path"`
	Include bool    `json:"include,omitempty"`
	Wrote   string  `json:"wrote"`         // text of the value or, with Include, of the added element
	Had     *string `json:"had,omitempty"` // previous text; nil = none
	Depth   int     `json:"depth"`         // elements of the path that existed
}

// Apply makes changes to a text. It returns the new text and the changes that were needed.
func Apply(f Format, text string, changes []Change) (string, []Done, error) {
	var done []Done
	text, back := plain(text)
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
	return back(text), done, nil
}

func (o *Done) apply(f Format, d document, text, value string) (string, error) {
	raw, depth, err := d.get(o.Path)
	if err != nil {
		return "", err
	}
	o.Depth = depth
	ok := depth == len(o.Path)
	if o.Include && ok {
		a, at, err := o.findElement(f, d, value)
		if err != nil || at >= 0 {
			return text, err
		}
		o.Wrote = value
		return a.include(o.Path, value)
	}
	if o.Include { // the array does not exist yet
		o.Wrote = value
		return d.set(o.Path, "["+value+"]", false)
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

// findElement returns the document of an array and the index of an element in it, or -1.
func (o *Done) findElement(f Format, d document, value string) (doc *jsonDocument, at int, err error) {
	doc, ok := d.(*jsonDocument)
	if !ok {
		return nil, -1, fmt.Errorf("arrays in %s are not changed here", f)
	}
	items, err := doc.items(o.Path)
	return doc, slices.IndexFunc(items, func(item string) bool { return same(f, item, value) }), err
}

// Undo reverts changes, latest first. kept lists settings that have another value now and are not changed.
func Undo(f Format, text string, done []Done) (after string, kept []Path, err error) {
	text, back := plain(text)
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
	return back(text), kept, nil
}

func (o *Done) undo(f Format, text string) (string, bool, error) {
	d, err := parse(f, text)
	if err != nil {
		return "", false, err
	}
	raw, depth, err := d.get(o.Path)
	if err != nil {
		return text, false, nil // what leads to the setting has another type now
	}
	switch {
	case depth < len(o.Path):
		return text, true, nil
	case o.Include:
		return o.exclude(f, d, text)
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

// exclude removes an element, and an array that was created for it and is empty.
func (o *Done) exclude(f Format, d document, text string) (string, bool, error) {
	doc, at, err := o.findElement(f, d, o.Wrote)
	if err != nil {
		return text, false, nil // no longer an array
	}
	if at < 0 {
		return text, true, nil
	}
	items, err := doc.items(o.Path)
	if err != nil {
		return "", false, err
	}
	if len(items) > 1 || o.Depth == len(o.Path) {
		text, err = doc.exclude(o.Path, at)
		return text, true, err
	}
	if text, err = doc.remove(o.Path); err != nil {
		return "", false, err
	}
	text, err = prune(f, text, o.Path, o.Depth)
	return text, true, err
}

// Has reports whether changes add the same element again.
func (o *Done) Has(f Format, changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool {
		if !c.Include || !slices.Equal(c.Path, o.Path) {
			return false
		}
		value, err := json.Marshal(c.Value)
		return err == nil && same(f, string(value), o.Wrote)
	})
}

// Present reports whether the array contains the element.
func (o *Done) Present(f Format, text string) bool {
	d, err := parse(f, text)
	if err != nil {
		return false
	}
	_, at, err := o.findElement(f, d, o.Wrote)
	return err == nil && at >= 0
}

// prune removes tables above p that a change created and that are now empty. depth elements of p existed before.
func prune(f Format, text string, p Path, depth int) (string, error) {
	for n := len(p) - 1; n > depth; n-- {
		d, err := parse(f, text)
		if err != nil {
			return "", err
		}
		if !d.canPrune(p[:n]) {
			break
		}
		if text, err = d.remove(p[:n]); err != nil {
			return "", err
		}
	}
	return text, nil
}

// same reports whether a and b, each in the format or in JSON, have equal values.
func same(f Format, a, b string) bool {
	if a == b {
		return true
	}
	x, errX := canonical(f, a)
	y, errY := canonical(f, b)
	return errX == nil && errY == nil && x == y
}

// canonical returns a value as JSON with sorted keys.
func canonical(f Format, raw string) (string, error) {
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

// Value decodes the value at a path into v. It returns false if there is none.
func Value(f Format, text string, p Path, v any) (bool, error) {
	d, err := parse(f, text)
	if err != nil {
		return false, err
	}
	raw, depth, err := d.get(p)
	if depth < len(p) || err != nil {
		return false, err
	}
	text, err = canonical(f, raw)
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal([]byte(text), v)
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

const bom = "\ufeff" // byte order mark

// plain returns a text without byte order mark and, if all its lines end in "\r\n", with "\n" instead. back reverts
// both.
func plain(text string) (rest string, back func(string) string) {
	rest, marked := strings.CutPrefix(text, bom)
	ending := "\n"
	if n := strings.Count(rest, "\r\n"); n > 0 && n == strings.Count(rest, "\n") {
		ending = "\r\n"
	}
	return strings.ReplaceAll(rest, ending, "\n"), func(after string) string {
		after = strings.ReplaceAll(after, "\n", ending)
		if marked {
			after = bom + after
		}
		return after
	}
}

func lineOf(text string, at int) string {
	at = min(at, len(text))
	return fmt.Sprintf("line %d", 1+strings.Count(text[:at], "\n"))
}

func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }
