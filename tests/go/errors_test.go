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
