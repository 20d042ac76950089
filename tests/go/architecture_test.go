package tests

import (
	"os"
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
