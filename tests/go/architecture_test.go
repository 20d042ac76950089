package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ARCHITECTURE.md is a map: short, and each file that it names is there.
func TestArchitectureIsAMap(t *testing.T) {
	text, err := os.ReadFile(root + "/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 10_000 {
		t.Errorf("ARCHITECTURE.md has %d bytes, more than 10 KB: protocols belong into the doc.go of their package", len(text))
	}
	for _, named := range regexp.MustCompile("\\]\\(([^)]+)\\)|`((?:libmalt|rdma|graphs|capi|python|tests|docs)/[a-z_/]+\\.(?:go|md|h|py))`").FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(root, named[1]+named[2])); err != nil {
			t.Errorf("ARCHITECTURE.md names %s: %v", named[1]+named[2], err)
		}
	}
}

// Each guarantee has tests whose names begin with its number, in Go or Python:
// TestG2…, TestG2G3…, test_g2_….
func TestGuaranteesAreTestedByName(t *testing.T) {
	text, err := os.ReadFile(root + "/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	guarantees := regexp.MustCompile(`(?m)^\| \*\*(G\d+)\*\* \|`).FindAllStringSubmatch(string(text), -1)
	if len(guarantees) < 13 {
		t.Fatalf("ARCHITECTURE.md lists %d guarantees", len(guarantees))
	}
	tests := regexp.MustCompile(`(?m)^(func Test((G\d+)+)|def test_((g\d+_)+))`)
	number := regexp.MustCompile(`G\d+`)
	named := map[string]bool{}
	for _, folder := range []string{"rdma", "libmalt", "tests"} {
		if err := filepath.WalkDir(filepath.Join(root, folder), func(p string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(p, "_test.go") && !strings.HasSuffix(p, ".py") {
				return err
			}
			source, err := os.ReadFile(p)
			for _, name := range tests.FindAllString(string(source), -1) {
				for _, g := range number.FindAllString(strings.ToUpper(name), -1) {
					named[g] = true
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range guarantees {
		if !named[g[1]] {
			t.Errorf("no test carries %s in its name", g[1])
		}
	}
}
