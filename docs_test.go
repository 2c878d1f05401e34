package toold_test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestThePromisesNameTestsThatExist holds ARCHITECTURE.md's table of promises
// against the tests of the packages it names.
func TestThePromisesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## Promises and their tests")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no table of promises")
	}
	all := parse(t)
	named := regexp.MustCompile("`([a-z/]+)`((?:,? Test[A-Za-z0-9]+)+)")
	found := 0
	for _, m := range named.FindAllStringSubmatch(table, -1) {
		for _, name := range strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' }) {
			found++
			if !all.hasTest(m[1], name) {
				t.Errorf("ARCHITECTURE.md names %s in %s, which does not exist", name, m[1])
			}
		}
	}
	if found < 12 {
		t.Errorf("the table of promises names %d tests, want one for each of the 12 promises", found)
	}
}

// hasTest tells whether a folder has a test function of that name.
func (all tree) hasTest(dir, name string) bool {
	for _, s := range all.dirs[dir] {
		if s.test() && declares(s, name) {
			return true
		}
	}
	return false
}

func declares(s source, name string) bool {
	for _, d := range s.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name {
			return true
		}
	}
	return false
}
