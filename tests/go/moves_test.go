package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// copies are the places, beside reduce.Copy and reduce.Fold, that copy bytes on the
// way of dense values or near it: function, and what it copies.
var copies = map[string]string{
	"libmalt/codec.Settled":            "a sparse vector's copy of what was sent",
	"libmalt/route/shared.showCard":    "the header of a collective call",
	"libmalt/codec.Whole":              "a sparse update as a whole one, for a fold in Python",
	"libmalt/internal/core.sendReason": "the words of an error",
	"libmalt/internal/core.At":         "the name of a place in a program",
	"libmalt/internal/core.putText":    "the same, or a mark",
}

// TestBytesMoveWhereTheyAreCounted: values move through reduce.Copy and reduce.Fold
// alone, so that TestBytesMoved in libmalt sees every pass over them.
func TestBytesMoveWhereTheyAreCounted(t *testing.T) {
	found := map[string]bool{}
	for _, folder := range []string{"libmalt", "libmalt/boxes", "libmalt/codec", "libmalt/internal/core", "libmalt/route/shared", "libmalt/route/hosts", "rdma/box", "rdma/shm", "rdma/rdmatest/inmem"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no Go files: %v", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				ast.Inspect(d, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "copy" {
						return true
					}
					in := "a variable"
					if f, ok := d.(*ast.FuncDecl); ok {
						in = f.Name.Name
					}
					place := fmt.Sprintf("%s.%s", folder, in)
					found[place] = true
					if copies[place] == "" {
						t.Errorf("%s: copy in %s: values are moved by reduce.Copy, which is counted; a copy of something else gets a line in this test", set.Position(call.Pos()), in)
					}
					return true
				})
			}
		}
	}
	for place, what := range copies {
		if !found[place] {
			t.Errorf("%s copies nothing, though this test lists it (%s): take the line out", place, what)
		}
	}
}
