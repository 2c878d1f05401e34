package toold_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestEveryPackageIsDescribedOnce(t *testing.T) {
	t.Parallel()
	for dir, files := range parse(t).dirs {
		var where []string
		code := false
		for _, s := range files {
			code = code || !s.test()
			if s.Doc != nil && !strings.HasPrefix(s.Doc.Text(), "go:build") {
				where = append(where, s.name)
			}
		}
		if code && len(where) != 1 {
			t.Errorf("package %s has %d package comments, want one: %v", dir, len(where), where)
		}
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, s := range tr.files(false) {
		for _, decl := range s.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && receiverIsExported(d) && !obvious(d) {
					t.Errorf("%s: %s has no comment", tr.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, name := range undocumented(d) {
					t.Errorf("%s: %s has no comment", tr.at(name), name.Name)
				}
			}
		}
	}
}

// receiverIsExported tells whether strangers can call a function or method.
func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// obvious tells whether a method only satisfies an interface everybody knows.
func obvious(d *ast.FuncDecl) bool {
	switch d.Name.Name {
	case "Error", "Write", "Read", "Close", "Len", "Less", "Swap":
		return d.Recv != nil
	}
	return false
}

// undocumented returns the exported names of a declaration that have no comment,
// neither of their own, nor beside them, nor on their group.
func undocumented(d *ast.GenDecl) (names []*ast.Ident) {
	for _, spec := range d.Specs {
		switch x := spec.(type) {
		case *ast.TypeSpec:
			if x.Name.IsExported() && x.Doc == nil && d.Doc == nil {
				names = append(names, x.Name)
			}
		case *ast.ValueSpec:
			for _, n := range x.Names {
				if n.IsExported() && x.Doc == nil && x.Comment == nil && d.Doc == nil {
					names = append(names, n)
				}
			}
		}
	}
	return names
}

// The one init belongs to the helper process: it must come before the rest of
// the program is initialised.
func TestThereIsOneInit(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, s := range tr.files(true) {
		for _, decl := range s.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if ok && d.Recv == nil && d.Name.Name == "init" && !strings.HasPrefix(s.name, "sandbox/internal/helper/") {
				t.Errorf("%s: an init function; call it from where it is needed", tr.at(d))
			}
		}
	}
}

// A package variable is a constant that Go cannot express: an error value, a
// compiled expression, an embedded file, or an unexported table or value that
// is computed once.
func TestPackageVariablesAreConstants(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, s := range tr.files(false) {
		for _, decl := range s.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				v := spec.(*ast.ValueSpec)
				if !constant(d, v) {
					t.Errorf("%s: package variable %s: pass it as a value", tr.at(v), v.Names[0].Name)
				}
			}
		}
	}
}

// constant tells whether a variable is only read, as far as its declaration
// shows it.
func constant(d *ast.GenDecl, v *ast.ValueSpec) bool {
	embedded := d.Doc != nil && strings.Contains(docText(d.Doc), "//go:embed ")
	if len(v.Values) == 0 {
		return embedded
	}
	for i, value := range v.Values {
		name := v.Names[i]
		switch x := value.(type) {
		case *ast.CompositeLit:
			if name.IsExported() {
				return false
			}
		case *ast.UnaryExpr: // a pointer to a literal: var _ I = (*T)(nil) comes as a call
			return false
		case *ast.CallExpr:
			if name.Name != "_" && !pure(x) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// What is compiled at its first use must compile.
func TestExpressionsCompile(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, sources := range tr.dirs {
		values := stringValues(sources)
		for _, s := range sources {
			ast.Inspect(s.File, func(n ast.Node) bool {
				c, ok := n.(*ast.CallExpr)
				if !ok || selected(c.Fun) != "lazyregexp.New" {
					return true
				}
				text, known := stringValue(c.Args[0], values)
				if !known {
					t.Errorf("%s: the expression is no constant text", tr.at(c))
				} else if _, err := regexp.Compile(text); err != nil {
					t.Errorf("%s: %v", tr.at(c), err)
				}
				return true
			})
		}
	}
}

// stringValues returns the initial values of the package's constants and variables by name.
func stringValues(sources []source) map[string]ast.Expr {
	values := map[string]ast.Expr{}
	for _, s := range sources {
		ast.Inspect(s.File, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
				for i, name := range v.Names {
					values[name.Name] = v.Values[i]
				}
			}
			return true
		})
	}
	return values
}

// stringValue returns the text of literals and names joined by +.
func stringValue(e ast.Expr, values map[string]ast.Expr) (text string, known bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.Ident:
		if value, ok := values[x.Name]; ok {
			return stringValue(value, values)
		}
	case *ast.BinaryExpr:
		left, known := stringValue(x.X, values)
		right, alsoKnown := stringValue(x.Y, values)
		return left + right, known && alsoKnown
	}
	return "", false
}

func selected(e ast.Expr) string {
	f, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, _ := f.X.(*ast.Ident)
	if pkg == nil {
		return ""
	}
	return pkg.Name + "." + f.Sel.Name
}

// pure reports whether a call makes a value that nothing changes afterwards.
func pure(c *ast.CallExpr) bool {
	switch selected(c.Fun) {
	case "errors.New", "fmt.Errorf", "lazyregexp.New", "sync.OnceValue", "sync.OnceValues", "strings.Fields", "strings.NewReplacer":
		return true
	}
	return false
}

func docText(g *ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range g.List {
		b.WriteString(c.Text + "\n")
	}
	return b.String()
}

func TestTestsWaitForEventsNotForTime(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, s := range tr.files(true) {
		if !s.test() {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, _ := sel.X.(*ast.Ident); pkg != nil && pkg.Name == "time" && sel.Sel.Name == "Sleep" {
				t.Errorf("%s: time.Sleep in a test; wait for what it waits for", tr.at(sel))
			}
			return true
		})
	}
}

// No context is kept in a struct: it belongs to a call, not to a value.
func TestNoContextInAStruct(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, s := range tr.files(false) {
		ast.Inspect(s.File, func(n ast.Node) bool {
			st, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range st.Fields.List {
				sel, _ := f.Type.(*ast.SelectorExpr)
				if sel == nil || sel.Sel.Name != "Context" {
					continue
				}
				if pkg, _ := sel.X.(*ast.Ident); pkg != nil && pkg.Name == "context" {
					t.Errorf("%s: a context in a struct", tr.at(f))
				}
			}
			return true
		})
	}
}

// Limits that nothing may pass; CONTRIBUTING.md says what is aimed at.
func TestFilesAndFunctionsAreShort(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, s := range tr.files(false) {
		if n := tr.fset.File(s.Pos()).LineCount(); n > 400 {
			t.Errorf("%s has %d lines; no file has more than 400", s.name, n)
		}
		for _, decl := range s.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && tr.lines(d) > 60 {
				t.Errorf("%s: %s has %d lines; no function has more than 60", tr.at(d), d.Name.Name, tr.lines(d))
			}
		}
	}
}

func TestNothingIsLeftToBeDone(t *testing.T) {
	t.Parallel()
	tr := parse(t)
	for _, s := range tr.files(true) {
		for _, g := range s.Comments {
			for _, c := range g.List {
				if strings.Contains(c.Text, "TO"+"DO") || strings.Contains(c.Text, "FIX"+"ME") {
					t.Errorf("%s: an open end: %s", tr.at(c), c.Text)
				}
			}
		}
	}
}
