package argument

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/internal/strict"
)

const maxDepth = 64

func kind(value json.RawMessage) string {
	switch value[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// FirstText returns the first of the named arguments that is a nonempty string, even if Decode would reject others. It
// returns "" if there is none, or if args is not a valid object.
func FirstText(args json.RawMessage, names ...string) string {
	members, _ := Object(args)
	for _, name := range names {
		for _, m := range members {
			if m.Name == name && len(m.Value) > len(`""`) && m.Value[0] == '"' {
				return strict.Text(m.Value)
			}
		}
	}
	return ""
}

// Path returns the path that a tool about files is called with, in each spelling that the tools accept, or "".
func Path(args json.RawMessage) string {
	return FirstText(args, "file_path", "filePath", "path", "dir_path", "directory")
}

// Object returns the members of a JSON object in order. Text that parsers may understand differently is an *Error.
// Names in nested objects may repeat.
func Object(text json.RawMessage) ([]strict.Member, error) {
	text = bytes.Trim(text, " \t\r\n")
	if err := checkText(text); err != nil {
		return nil, err
	}
	if text[0] != '{' {
		return nil, &Error{Problem: "expected a JSON object, got " + kind(text)}
	}
	members, err := strict.Object(text, math.MaxInt)
	if err != nil {
		return nil, &Error{Problem: err.Error()}
	}
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		if err := checkStrings(m.Quoted); err != nil {
			return nil, &Error{Field: shorten(m.Name), Problem: err.Error() + " in the argument's name"}
		}
		if seen[m.Name] {
			return nil, &Error{Field: shorten(m.Name), Problem: "given more than once; send it once"}
		}
		seen[m.Name] = true
		if err := checkStrings(m.Value); err != nil {
			return nil, &Error{Field: shorten(m.Name), Problem: err.Error()}
		}
	}
	return members, nil
}

func checkText(text json.RawMessage) error {
	switch {
	case strict.Valid(text, maxDepth):
		return nil
	case len(text) == 0:
		return &Error{Problem: `empty text; expected a JSON object such as {"name": "value"}`}
	case !utf8.Valid(text):
		return &Error{Problem: "not valid UTF-8"}
	case strict.TooDeep(text, maxDepth):
		return &Error{Problem: fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	problem := fmt.Sprintf("not valid JSON: %v", err)
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		problem += fmt.Sprintf(" (byte %d)", syntax.Offset)
	}
	return &Error{Problem: problem}
}

// checkStrings rejects escapes that parsers understand differently.
func checkStrings(text []byte) error {
	switch odd := strict.Ambiguous(text, true); odd {
	case "":
		return nil
	case `\u0000`:
		return errors.New(`contains a NUL character (\u0000)`)
	default:
		return fmt.Errorf("contains half of a surrogate pair (%s)", strings.ToLower(odd))
	}
}

// Hash returns the SHA-256 in hexadecimal of a tool's canonical name and arguments. White space, order of keys and
// escapes do not matter. Arguments that Object rejects also have hashes.
func Hash(tool string, args json.RawMessage) string {
	h := sha256.New()
	io.WriteString(h, tool+"\x00")
	if _, err := Object(args); err != nil {
		io.WriteString(h, "\x00") // no canonical text begins with it
		h.Write(args)
	} else {
		writeCanonical(h, bytes.TrimSpace(args))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// writeCanonical writes valid JSON of limited depth with sorted keys. Strings are decoded and preceded by their
// length.
func writeCanonical(w io.Writer, value json.RawMessage) {
	switch value[0] {
	case '{':
		members, _ := strict.Object(value, math.MaxInt)
		for i := range members {
			members[i].Name = canonicalString(members[i].Name)
		}
		// Stable, so that repeated keys in nested objects keep their order: which of them counts depends on the
		// parser.
		slices.SortStableFunc(members, func(a, b strict.Member) int { return strings.Compare(a.Name, b.Name) })
		io.WriteString(w, "{")
		for _, m := range members {
			io.WriteString(w, m.Name+":")
			writeCanonical(w, m.Value)
			io.WriteString(w, ",")
		}
		io.WriteString(w, "}")
	case '[':
		elements, _ := strict.Array(value, math.MaxInt)
		io.WriteString(w, "[")
		for _, element := range elements {
			io.WriteString(w, ":")
			writeCanonical(w, element)
			io.WriteString(w, ",")
		}
		io.WriteString(w, "]")
	case '"':
		text := strict.Text(value) // may be long, so it is not copied again
		io.WriteString(w, strconv.Itoa(len(text))+"\"")
		io.WriteString(w, text)
	default:
		w.Write(value)
	}
}

func canonicalString(s string) string { return strconv.Itoa(len(s)) + "\"" + s }
