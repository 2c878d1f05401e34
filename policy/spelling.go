package policy

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed flags.txt
var spellings string

// flagTable holds the spellings of flags by the name of a program, or of a program
// and its subcommand, and by each spelling.
type flagTable map[string]map[string][]string

// flagSpellings is parsed once; it never changes.
var flagSpellings = sync.OnceValue(func() flagTable {
	table := make(flagTable)
	for line := range strings.Lines(spellings) {
		head, rest, ok := strings.Cut(line, " -")
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		fields := strings.Fields(head)
		for name := range strings.SplitSeq(fields[0], ",") {
			key := strings.Join(append([]string{name}, fields[1:]...), " ")
			table[key] = make(map[string][]string)
			for word := range strings.FieldsSeq("-" + rest) {
				table.add(key, strings.Split(word, ","))
			}
		}
	}
	return table
})

// add adds one flag with all its spellings.
func (t flagTable) add(key string, all []string) {
	for _, flag := range all {
		t[key][flag] = append(t[key][flag], all...)
	}
}

// KnowsFlags reports whether the spellings of the flags of a program are known: a
// rule that asks or denies then matches each of them. It is safe for concurrent use.
func KnowsFlags(program string) bool {
	_, known := flagSpellings()[baseName(program)]
	return known || goFlags[baseName(program)]
}

// synonyms returns every spelling of a flag of a program, or of its subcommand.
func (t flagTable) synonyms(name, subcommand, flag string) []string {
	all := t[name][flag]
	if subcommand != "" {
		all = slices.Concat(all, t[name+" "+subcommand][flag])
	}
	if len(all) == 0 {
		return []string{flag}
	}
	return all
}

// together returns lists of flags: a command that has all of one list has a flag of
// a pattern. -rf is -r and -f.
func (t flagTable) together(name, subcommand, flag string) (lists [][]string) {
	for _, s := range t.synonyms(name, subcommand, flag) {
		if strings.Contains(s, "+") {
			lists = append(lists, strings.Split(s, "+"))
		}
	}
	if letters, ok := unbundled(name, flag); ok {
		lists = append(lists, letters)
	}
	return lists
}

// unbundled returns the flags of one letter that a flag of a pattern stands for. ok
// is false for a flag that is one.
func unbundled(name, flag string) (letters []string, ok bool) {
	if goFlags[name] || len(flag) < 3 || flag[1] == '-' {
		return nil, false
	}
	for _, r := range flag[1:] {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return nil, false // a value
		}
		letters = append(letters, "-"+string(r))
	}
	return letters, true
}
