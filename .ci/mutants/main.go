// Command mutants changes one operator, constant or statement at a time, and prints the changes that
// the tests of the package do not find:
//
//	go run ./.ci/mutants [-n 40] [-seed 1] [-find 90] ./policy ./message
//
// It exits with 1 if fewer than -find percent are found. Tests that run for ten minutes have found
// one.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

func main() {
	n := flag.Int("n", 40, "mutants of each package")
	seed := flag.Uint64("seed", 1, "which")
	find := flag.Int("find", 90, "of a hundred that must be found")
	flag.Parse()
	failed := false
	for _, dir := range flag.Args() {
		found, made, err := try(dir, *n, rand.New(rand.NewPCG(*seed, 0)))
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(2)
		}
		fmt.Printf("%s: %d of %d found\n", dir, found, made)
		failed = failed || 100*found < *find*made
	}
	if failed {
		os.Exit(1)
	}
}

// try tries n mutants that compile.
func try(dir string, n int, random *rand.Rand) (found, made int, err error) {
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return 0, 0, err
	}
	var paths []string
	for _, name := range p.GoFiles {
		paths = append(paths, filepath.Join(dir, name))
	}
	// Tests that fail anyway would find every mutant.
	if out, err := exec.Command("go", "test", "-count=1", dir).CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("the tests of %s fail without a change: %w\n%s", dir, err, out)
	}
	known := map[string]bool{}
	for attempts := 0; made < n && attempts < 5*n; attempts++ {
		path := paths[random.IntN(len(paths))]
		text, what, err := mutate(path, random)
		if err != nil {
			return 0, 0, err
		}
		if what == "" || known[what] {
			continue
		}
		known[what] = true
		switch survived, err := survives(dir, path, text); {
		case errors.Is(err, errNoMutant):
			continue
		case err != nil:
			return 0, 0, err
		case survived:
			fmt.Println("not found:", what)
		default:
			found++
		}
		made++
	}
	return found, made, nil
}

var errNoMutant = errors.New("it does not compile")

func survives(dir, path string, text []byte) (bool, error) {
	scratch, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	full, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	changed, overlay := filepath.Join(scratch, "changed.go"), filepath.Join(scratch, "overlay.json")
	list, _ := json.Marshal(map[string]map[string]string{"Replace": {full: changed}})
	if err := errors.Join(os.WriteFile(changed, text, 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return false, err
	}
	if exec.Command("go", "build", "-overlay", overlay, dir).Run() != nil {
		return false, errNoMutant
	}
	return exec.Command("go", "test", "-vet=off", "-failfast", "-overlay", overlay, dir).Run() == nil, nil
}

// mutate changes one thing in a file and says which.
func mutate(path string, random *rand.Rand) (text []byte, what string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		return nil, "", err
	}
	var places []change
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			ast.Inspect(f.Body, func(n ast.Node) bool {
				places = append(places, changes(n)...)
				return true
			})
		}
	}
	if len(places) == 0 {
		return nil, "", nil
	}
	c := places[random.IntN(len(places))]
	what = fmt.Sprintf("%s: %s", set.Position(c.at), c.what)
	c.do()
	var b bytes.Buffer
	err = format.Node(&b, set, file)
	return b.Bytes(), what, err
}

type change struct {
	at   token.Pos
	what string
	do   func()
}

// others are the operators that replace one another.
var others = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD, token.AND: token.OR, token.OR: token.AND,
}

func changes(n ast.Node) (list []change) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if other, ok := others[n.Op]; ok {
			list = append(list, change{n.OpPos, fmt.Sprintf("%s becomes %s", n.Op, other), func() { n.Op = other }})
		}
	case *ast.IfStmt:
		list = append(list, change{n.If, "the condition is turned round", func() {
			n.Cond = &ast.UnaryExpr{Op: token.NOT, X: &ast.ParenExpr{X: n.Cond}}
		}})
	case *ast.BasicLit:
		if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
			list = append(list, change{n.ValuePos, n.Value + " becomes one more", func() { n.Value = strconv.Itoa(v + 1) }})
		}
	case *ast.Ident:
		if flip := map[string]string{"true": "false", "false": "true"}[n.Name]; flip != "" {
			list = append(list, change{n.NamePos, n.Name + " becomes " + flip, func() { n.Name = flip }})
		}
	case *ast.BlockStmt:
		for i, s := range n.List {
			if isEffect(s) {
				list = append(list, change{s.Pos(), "the statement is left out", func() { n.List[i] = &ast.EmptyStmt{Implicit: true} }})
			}
		}
	case *ast.BranchStmt:
		if flip := map[token.Token]token.Token{token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK}[n.Tok]; flip != 0 {
			list = append(list, change{n.TokPos, n.Tok.String() + " becomes " + flip.String(), func() { n.Tok = flip }})
		}
	}
	return list
}

func isEffect(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	}
	return false
}
