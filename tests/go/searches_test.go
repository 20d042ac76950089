package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exploreTests runs a package's exhaustive checks, which are behind a build tag:
// see internal/explore.
func exploreTests(pkg, run string, env []string, more ...string) (output string, err error) {
	args := append([]string{"test", "-tags", "explore", "-vet", "off", "-ldflags", "-w", "-run", run, "-v"}, more...)
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// explored are the packages that have such checks.
var explored = []string{"rdma/box", "rdma/rendezvous", "libmalt"}

// heavy says why the searches are not run, if they are not. It looks at the whole
// module, which is built in a process of its own: go test repeats an old result
// unless something has changed that the test has looked at.
func heavy(t *testing.T) {
	t.Helper()
	imports(t)
	switch {
	case raceDetector:
		t.Skip("the searches run one thread at a time: nothing for the race detector to see")
	case testing.Short():
		t.Skip("-short leaves the searches out")
	}
}

// searches runs the checks of all packages and prints what they covered.
func searches(t *testing.T, env []string, more ...string) {
	for _, pkg := range explored {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			out, err := exploreTests(pkg, "^TestExplore", env, more...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			searched := 0
			for line := range strings.Lines(out) {
				if strings.Contains(line, " states, ") {
					searched++
				}
				if !strings.HasPrefix(line, "=== ") {
					t.Log(strings.TrimRight(line, "\n"))
				}
			}
			if searched == 0 {
				t.Fatalf("nothing was searched:\n%s", out)
			}
		})
	}
}

// The protocols in every interleaving of small cases.
func TestExplore(t *testing.T) {
	heavy(t)
	searches(t, nil)
}

// The same with cases that take minutes each.
func TestExploreBig(t *testing.T) {
	heavy(t)
	if os.Getenv("MALT_EXPLORE") != "big" {
		t.Skip("make explore runs this: it takes an hour")
	}
	searches(t, []string{"MALT_EXPLORE=big"}, "-timeout", "0", "-parallel", "1")
}

// overlay writes the file as m has it, and the map that makes go build use it.
func (m *mutation) overlay(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		t.Fatalf("%s has the text %q %d times, not once: keep this table in step with the code", m.file, m.old, n)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each step is needed: without it the search fails, in the way expected.
func TestExploreCatchesMutations(t *testing.T) {
	heavy(t)
	slots := make(chan struct{}, 2) // two builds at a time: `go test` runs packages side by side, too
	for _, m := range mutations {
		t.Run(strings.ReplaceAll(m.line, " ", "_"), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			pkg := m.pkg
			if pkg == "" {
				pkg = filepath.ToSlash(filepath.Dir(m.file))
			}
			name, sub, _ := strings.Cut(m.caught, "/")
			run := fmt.Sprintf("^%s$/^%s$", name, sub)
			out, err := exploreTests(pkg, run, nil, "-overlay", m.overlay(t))
			switch {
			case err == nil:
				t.Errorf("%s: not noticed by %s:\n%s", m.line, m.caught, out)
			case !strings.Contains(out, "--- FAIL: "+m.caught):
				t.Errorf("%s: %s did not fail:\n%s", m.line, m.caught, out)
			case !strings.Contains(out, m.how):
				t.Errorf("%s: %s failed in another way than by %q:\n%s", m.line, m.caught, m.how, out)
			}
		})
	}
}
