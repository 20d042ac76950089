package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ARCHITECTURE.md shows newcomers the import policy that is enforced.
func TestArchitectureShowsPolicy(t *testing.T) {
	text, err := os.ReadFile(root + "/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "```"+policy+"```") {
		t.Error("ARCHITECTURE.md: the block under “Who may import whom” differs from policy in imports_test.go: copy it there")
	}
}

// Each guarantee has tests whose names begin with its number, in Go or Python:
// TestG2…, TestG2G3…, test_g2_….
func TestGuaranteesAreTestedByName(t *testing.T) {
	text, err := os.ReadFile(root + "/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	guarantees := regexp.MustCompile(`(?m)^\| \*\*(G\d)\*\* \|`).FindAllStringSubmatch(string(text), -1)
	if len(guarantees) < 7 {
		t.Fatalf("ARCHITECTURE.md lists %d guarantees", len(guarantees))
	}
	tests := regexp.MustCompile(`(?m)^(func Test((G\d)+)|def test_((g\d_)+))`)
	named := ""
	for _, folder := range []string{"rdma", "libmalt", "tests"} {
		if err := filepath.WalkDir(filepath.Join(root, folder), func(p string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(p, "_test.go") && !strings.HasSuffix(p, ".py") {
				return err
			}
			source, err := os.ReadFile(p)
			for _, name := range tests.FindAllString(string(source), -1) {
				named += strings.ToUpper(name) + "\n"
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range guarantees {
		if !strings.Contains(named, g[1]) {
			t.Errorf("no test carries %s in its name", g[1])
		}
	}
}
