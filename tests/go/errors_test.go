package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestErrorsHaveNoPrefix: a person reads what happened, and not by which packages the
// error came. So no text in the source of an error, or of what is put before one,
// begins with the name of a package.
func TestErrorsHaveNoPrefix(t *testing.T) {
	prefixed := regexp.MustCompile("^[\"`](malt|capi|libmalt|rdma|shm|tcp|inmem|mixed|auto|rendezvous|meeting|box|mem|graphs|consistency|reduce|spvec|exchange|handshake): ")
	found := 0
	for _, root := range []string{"capi", "graphs", "libmalt", "rdma"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" {
					return false // a defect's, for us
				}
				checkWidth(t, path, call)
				for _, arg := range call.Args {
					if text, ok := arg.(*ast.BasicLit); ok && text.Kind == token.STRING {
						found++
						if prefixed.MatchString(text.Value) {
							t.Errorf("%s: %s: begins with the name of a package", path, text.Value)
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 500 {
		t.Errorf("found only %d texts", found)
	}
}

// verbs are what stands for a value in the text of an error.
var verbs = regexp.MustCompile(`%[-+#.0-9]*[a-zA-Z]`)

// checkWidth holds that a line of an error has at most 120 letters besides long values:
// say.Lines would break it.
func checkWidth(t *testing.T, path string, call *ast.CallExpr) {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	i, ok := map[string]int{"Errorf": 1, "At": 0, "Try": 0, "badArgument": 0}[name]
	if !ok || i >= len(call.Args) {
		return
	}
	if text, ok := call.Args[i].(*ast.BasicLit); ok && text.Kind == token.STRING {
		if line := verbs.ReplaceAllString(text.Value, "12345678"); utf8.RuneCountInString(line) > 120 {
			t.Errorf("%s: a line of %d letters: %s", path, utf8.RuneCountInString(line), line)
		}
	}
}
