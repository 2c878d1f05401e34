package toold_test

import (
	"cmp"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// functions yields every function of the project that has a body.
func (tr tree) functions(visit func(s source, d *ast.FuncDecl)) {
	for _, s := range tr.files(false) {
		for _, decl := range s.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Body != nil {
				visit(s, d)
			}
		}
	}
}

func TestFunctionsAreSimple(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	total, count, long := 0, 0, 0
	tr.functions(func(_ source, d *ast.FuncDecl) {
		n := tr.lines(d)
		total, count = total+n, count+1
		if n > 50 {
			long++
		}
		ways, depth := branches(d.Body), nesting(d.Body, 0)
		if ways > 15 || depth > 5 {
			t.Errorf("%s: %s has %d ways through it and is nested %d deep: more than 15 or 5", tr.at(d), d.Name.Name, ways, depth)
		}
	})
	mean := float64(total) / float64(count)
	t.Logf("%d functions, %.1f lines on average, %d over 50 lines", count, mean, long)
	if mean > 16 || long*100 > count*3 {
		t.Errorf("functions have %.1f lines on average and %d of %d have more than 50", mean, long, count)
	}
}

// branches is the cyclomatic complexity: one, and one more for each decision.
func branches(n ast.Node) int {
	c := 1
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			c++
		case *ast.CaseClause:
			if x.List != nil {
				c++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				c++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				c++
			}
		}
		return true
	})
	return c
}

// nesting is how deep blocks lie in blocks below n; a chain of else if is flat.
func nesting(n ast.Node, depth int) int {
	deepest := depth
	ast.Inspect(n, func(m ast.Node) bool {
		if m == n {
			return true
		}
		switch x := m.(type) {
		case *ast.IfStmt:
			deepest = max(deepest, nesting(x.Body, depth+1))
			if x.Else != nil {
				if _, chained := x.Else.(*ast.IfStmt); chained {
					deepest = max(deepest, nesting(&ast.BlockStmt{List: []ast.Stmt{x.Else}}, depth))
				} else {
					deepest = max(deepest, nesting(x.Else, depth+1))
				}
			}
			return false
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			deepest = max(deepest, nesting(body(x), depth+1))
			return false
		}
		return true
	})
	return deepest
}

// body is the block of a loop or a switch.
func body(n ast.Node) *ast.BlockStmt {
	switch x := n.(type) {
	case *ast.ForStmt:
		return x.Body
	case *ast.RangeStmt:
		return x.Body
	case *ast.SwitchStmt:
		return x.Body
	case *ast.TypeSwitchStmt:
		return x.Body
	case *ast.SelectStmt:
		return x.Body
	}
	return &ast.BlockStmt{}
}

func TestALineHasFewBooleanOperators(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, s := range tr.files(false) {
		count := make(map[int]int)
		ast.Inspect(s.File, func(n ast.Node) bool {
			if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
				count[tr.fset.Position(b.OpPos).Line]++
			}
			return true
		})
		for line, n := range count {
			if n > 2 {
				t.Errorf("%s:%d has %d boolean operators: more than 2; name a condition", s.name, line, n)
			}
		}
	}
}

func TestWhatMustStaySmallIs(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for dirs, most := range map[string]int{
		"shell policy policy/check": 10_000, // what judges, without the specifications' parser
		"cmd/toold":                 2_800,  // flags, printing and exit codes
	} {
		lines := 0
		for dir := range strings.FieldsSeq(dirs) {
			for _, s := range tr.dirs[dir] {
				if !s.test() {
					lines += tr.fset.File(s.FileStart).LineCount()
				}
			}
		}
		t.Logf("%s: %d lines", dirs, lines)
		if lines > most {
			t.Errorf("%s: %d lines, more than %d: look first for what to delete", dirs, lines, most)
		}
	}
}

// mostExported is how many types and functions a package may export: what a stranger has to know
// before using it. Package message is the protocol; the other exceptions may only become smaller.
const mostExported = 25

func TestPackagesExportFewNames(t *testing.T) {
	t.Parallel()
	more := map[string]int{"message": 60}
	for dir, sources := range parse(t).dirs {
		names := map[string]bool{} // a system may have its own version of one
		for _, s := range sources {
			if !s.test() {
				for _, name := range exported(s) {
					names[name] = true
				}
			}
		}
		if most := cmp.Or(more[dir], mostExported); len(names) > most {
			t.Errorf("package %s exports %d types and functions, more than %d: look first for what to delete", dir, len(names), most)
		}
	}
}

// exported returns the types and functions of a file that other packages can name.
func exported(s source) (names []string) {
	for _, decl := range s.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if x, ok := spec.(*ast.TypeSpec); ok && x.Name.IsExported() {
					names = append(names, x.Name.Name)
				}
			}
		}
	}
	return names
}
