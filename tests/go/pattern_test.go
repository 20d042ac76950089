package tests

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// pattern is an expression, or statements one after the other, in which names that
// begin with a dollar sign stand for any expression, the same ones for the same. It
// is looked for in the syntax tree, so that neither the layout of the code, nor its
// comments, nor the names of its variables matter.
type pattern struct {
	expr  ast.Expr
	stmts []ast.Stmt
}

// meta is what a dollar sign is for the parser.
const meta = "meta__"

var metaName = regexp.MustCompile(`\$(\w+)`)

func parsePattern(text string) (*pattern, error) {
	text = metaName.ReplaceAllString(text, meta+"$1")
	if e, err := parser.ParseExpr(text); err == nil {
		return &pattern{expr: e}, nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p; func f() {\n"+text+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	stmts := f.Decls[0].(*ast.FuncDecl).Body.List
	if len(stmts) == 0 {
		return nil, errors.New("neither an expression nor statements")
	}
	return &pattern{stmts: stmts}, nil
}

// found is a place that a pattern fits.
type found struct {
	from, to token.Pos
	stands   map[string]ast.Node // by name: what it stands for
}

// fill is text with what the names in it stand for.
func (f *found) fill(text, source string) (filled string, err error) {
	filled = metaName.ReplaceAllStringFunc(text, func(name string) string {
		n, ok := f.stands[meta+name[1:]]
		if !ok {
			err = fmt.Errorf("%s stands for nothing in the pattern", name)
			return name
		}
		return source[n.Pos()-1 : n.End()-1]
	})
	return filled, err
}

// find gives all places within a function that the pattern fits.
func (p *pattern) find(body ast.Node) (all []found) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case ast.Expr:
			f := found{from: n.Pos(), to: n.End(), stands: map[string]ast.Node{}}
			if p.expr != nil && f.same(reflect.ValueOf(p.expr), reflect.ValueOf(n)) {
				all = append(all, f)
			}
		case *ast.BlockStmt:
			all = append(all, p.among(n.List)...)
		case *ast.CaseClause:
			all = append(all, p.among(n.Body)...)
		case *ast.IfStmt:
			all = append(all, p.among([]ast.Stmt{n.Init})...)
		}
		return true
	})
	return all
}

// among gives the places in a list of statements.
func (p *pattern) among(list []ast.Stmt) (all []found) {
	for i := 0; len(p.stmts) > 0 && i+len(p.stmts) <= len(list); i++ {
		run := list[i : i+len(p.stmts)]
		f := found{stands: map[string]ast.Node{}}
		if f.same(reflect.ValueOf(p.stmts), reflect.ValueOf(run)) {
			f.from, f.to = run[0].Pos(), run[len(run)-1].End()
			all = append(all, f)
		}
	}
	return all
}

// same tells whether a part of the pattern fits a part of the tree.
func (f *found) same(p, n reflect.Value) bool {
	if p.Kind() == reflect.Interface {
		p = p.Elem()
	}
	if n.Kind() == reflect.Interface {
		n = n.Elem()
	}
	if !p.IsValid() || !n.IsValid() {
		return p.IsValid() == n.IsValid()
	}
	if name, ok := p.Interface().(*ast.Ident); ok && name != nil && strings.HasPrefix(name.Name, meta) {
		return f.stand(name.Name, n)
	}
	if p.Type() != n.Type() {
		return false
	}
	switch p.Interface().(type) {
	case token.Pos, *ast.CommentGroup:
		return true
	}
	switch p.Kind() {
	case reflect.Pointer:
		if p.IsNil() || n.IsNil() {
			return p.IsNil() == n.IsNil()
		}
		return f.same(p.Elem(), n.Elem())
	case reflect.Struct:
		for i := range p.NumField() {
			if !f.same(p.Field(i), n.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if p.Len() != n.Len() {
			return false
		}
		for i := range p.Len() {
			if !f.same(p.Index(i), n.Index(i)) {
				return false
			}
		}
		return true
	}
	return p.Equal(n)
}

// stand lets a name stand for an expression, if it does not stand for another.
func (f *found) stand(name string, n reflect.Value) bool {
	e, ok := n.Interface().(ast.Expr)
	if !ok {
		return false
	}
	if old, ok := f.stands[name]; ok {
		return f.same(reflect.ValueOf(old), n)
	}
	f.stands[name] = e
	return true
}

// A pattern fits code whatever its variables are called and however it is laid out.
func TestPatterns(t *testing.T) {
	const text = `package p
func (x *T[K]) f() {
	if n := x.look(1); n > 0 { // why
		x.tell(1)
		x.tell(
			2)
	}
	switch {
	case x.done:
		x.tell(1); x.leave(x.n[:0])
	}
}`
	s, err := parseSource("p.go", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		old, new, want string
		fits           int
	}{
		{"$a.tell(1)\n$a.tell(2)", "$a.tell(2)", "x.tell(2)", 1},
		{"$n := $o.look(1)", "$n := 0 * $o.n", "n := 0 * x.n", 1},
		{"$a.leave($b)", "$b", "x.n[:0]", 1},
		{"$a.done", "!($a.done)", "!(x.done)", 1},
		{"$a.tell(1)", "", "", 2},
		{"$a.tell($a)", "", "", 0},
	} {
		p, err := parsePattern(c.old)
		if err != nil {
			t.Fatal(err)
		}
		all := p.find(s.funcs[0].body)
		if len(all) != c.fits {
			t.Errorf("%q fits %d times, not %d", c.old, len(all), c.fits)
			continue
		}
		if c.fits == 1 {
			if got, err := all[0].fill(c.new, text); got != c.want || err != nil {
				t.Errorf("%q for %q gives %q (%v), not %q", c.new, c.old, got, err, c.want)
			}
			if _, err := all[0].fill("$other", text); err == nil {
				t.Error("a name that stands for nothing is filled in")
			}
		}
	}
	if name := s.funcs[0].name; name != "T.f" {
		t.Errorf("the function is called %q", name)
	}
}
