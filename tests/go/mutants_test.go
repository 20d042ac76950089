package tests

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
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
	for dir, numbers := range byPackage(all) {
		files, err := parsePackage(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range numbers {
			if err := files.mutate(1+i, &all[i]); err != nil {
				t.Error(err)
			}
		}
		for _, s := range files {
			if s.mutated {
				write(path.Join(dir, s.name), s.String())
			}
		}
		write(path.Join(dir, "mutant.go"), fmt.Sprintf(mutantFile, files[0].pkg))
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

func byPackage(all []mutation) map[string][]int {
	numbers := map[string][]int{}
	for i := range all {
		dir, _ := all[i].place()
		numbers[dir] = append(numbers[dir], i)
	}
	return numbers
}

// sources are the files of a package as the searches build it, but for its tests.
type sources []*source

// source is a file, and what is put in front of the bodies of its functions.
type source struct {
	name    string
	text    string
	pkg     string
	mutated bool
	funcs   []*function
}

type function struct {
	name     string // with the type of its receiver
	body     *ast.BlockStmt
	from, to int // of the body, in between its braces
	results  bool
	mutated  strings.Builder
}

func parsePackage(dir string) (sources, error) {
	config := build.Default
	config.BuildTags = []string{"explore"}
	pkg, err := config.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		return nil, err
	}
	var all sources
	for _, name := range pkg.GoFiles {
		text, err := os.ReadFile(filepath.Join(pkg.Dir, name))
		if err != nil {
			return nil, err
		}
		s, err := parseSource(name, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func parseSource(name, text string) (*source, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{name: name, text: text, pkg: f.Name.Name}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			s.funcs = append(s.funcs, &function{
				name: receiver(d) + d.Name.Name, body: d.Body,
				from: int(d.Body.Lbrace), to: int(d.Body.Rbrace) - 1, results: d.Type.Results != nil,
			})
		}
	}
	return s, nil
}

// receiver is the type of a method's receiver and a point.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "."
		}
	}
}

// mutate enters m, which changes the body of a function.
func (all sources) mutate(number int, m *mutation) error {
	dir, name := m.place()
	for _, s := range all {
		for _, f := range s.funcs {
			if f.name == name {
				s.mutated = true
				return s.mutate(f, number, m)
			}
		}
	}
	return fmt.Errorf("%s: %s has no function %s: keep this table in step with the code", m.line, dir, name)
}

func (s *source) mutate(f *function, number int, m *mutation) error {
	p, err := parsePattern(m.old)
	if err != nil {
		return fmt.Errorf("%s: %q: %w", m.line, m.old, err)
	}
	found := p.find(f.body)
	if len(found) != 1 {
		return fmt.Errorf("%s: %s has %q %d times, not once: keep this table in step with the code", m.line, m.in, m.old, len(found))
	}
	from, to := int(found[0].from)-1, int(found[0].to)-1
	text, err := found[0].fill(m.new, s.text)
	if err != nil {
		return fmt.Errorf("%s: %q: %w", m.line, m.new, err)
	}
	body := s.text[f.from:from] + text + s.text[to:f.to]
	if !f.results {
		body += "\nreturn\n"
	}
	fmt.Fprintf(&f.mutated, "\nif mutant == %d {%s}\n", number, body)
	return nil
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
