package tests

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Each package is built once with all mutations in it. A function that some change
// begins with their versions of its body, of which the process runs at most one: the
// one whose number is in the environment.
//
//	func (b *Box) Step() bool {
//		if mutant == 3 {
//			… the whole body, mutated
//		}
//		… the body as it is
//	}
const mutantKey = "MALT_MUTANT"

// mutantFile is put into each package that has mutations.
const mutantFile = `package %s

import (
	"os"
	"strconv"
)

var mutant, _ = strconv.Atoi(os.Getenv("` + mutantKey + `"))
`

// mutants writes the files of the mutations, of which the first is number 1, and the
// map that makes go build use them.
func mutants(t *testing.T, all []mutation) (overlay string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	write := func(file, text string) {
		at, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		replace[at] = filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(replace[at], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	byFile := map[string][]int{}
	for i := range all {
		byFile[all[i].file] = append(byFile[all[i].file], i)
	}
	for file, numbers := range byFile {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseSource(file, string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range numbers {
			if err := s.mutate(1+i, &all[i]); err != nil {
				t.Error(err)
			}
		}
		write(file, s.String())
		write(path.Join(path.Dir(file), "mutant.go"), fmt.Sprintf(mutantFile, s.pkg))
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// source is a file, and what is put in front of the bodies of its functions.
type source struct {
	text  string
	pkg   string
	funcs []*function
}

type function struct {
	from, to int // of the body, in between its braces
	results  bool
	mutated  strings.Builder
}

func parseSource(name, text string) (*source, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{text: text, pkg: f.Name.Name}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			s.funcs = append(s.funcs, &function{
				from: files.Position(d.Body.Lbrace).Offset + 1, to: files.Position(d.Body.Rbrace).Offset,
				results: d.Type.Results != nil,
			})
		}
	}
	return s, nil
}

// mutate enters m, which changes the body of a function.
func (s *source) mutate(number int, m *mutation) error {
	if n := strings.Count(s.text, m.old); n != 1 {
		return fmt.Errorf("%s: %s has the text %q %d times, not once: keep this table in step with the code", m.line, m.file, m.old, n)
	}
	at := strings.Index(s.text, m.old)
	for _, f := range s.funcs {
		if f.from <= at && at+len(m.old) <= f.to {
			body := s.text[f.from:at] + m.new + s.text[at+len(m.old):f.to]
			if !f.results {
				body += "\nreturn\n"
			}
			fmt.Fprintf(&f.mutated, "\nif mutant == %d {%s}\n", number, body)
			return nil
		}
	}
	return fmt.Errorf("%s: the text %q of %s is not within one function: change what a function does", m.line, m.old, m.file)
}

func (s *source) String() string {
	var b strings.Builder
	at := 0
	for _, f := range s.funcs {
		b.WriteString(s.text[at:f.from] + f.mutated.String())
		at = f.from
	}
	return b.String() + s.text[at:]
}
