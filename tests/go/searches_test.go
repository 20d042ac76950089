package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// exploreTests runs a package's exhaustive checks, which are behind a build tag:
// see internal/explore.
func exploreTests(pkg, run string, env []string, more ...string) (output string, err error) {
	args := append([]string{"test", "-tags", "explore", "-vet", "off", "-ldflags", "-w", "-run", run, "-v"}, more...)
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Dir, cmd.Env = root, searching(env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// searching is the environment of a search. Its threads make much garbage and keep
// little: to collect it less often saves a fifth of the time.
func searching(env ...string) []string { return append(append(os.Environ(), "GOGC=400"), env...) }

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

// Each step is needed: without it the search fails, in the way expected.
func TestExploreCatchesMutations(t *testing.T) {
	heavy(t)
	bin := t.TempDir()
	build := exec.Command("go", "test", "-c", "-o", bin, "-tags", "explore", "-vet", "off", "-ldflags", "-w", "-overlay", mutants(t, mutations))
	for _, pkg := range explored {
		build.Args = append(build.Args, "./"+pkg)
	}
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	slots := make(chan struct{}, 2) // `go test` runs packages side by side, too
	for i, m := range mutations {
		t.Run(strings.ReplaceAll(m.line, " ", "_"), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			pkg := m.pkg
			if pkg == "" {
				pkg = path.Dir(m.file)
			}
			name, sub, _ := strings.Cut(m.caught, "/")
			search := exec.Command(filepath.Join(bin, path.Base(pkg)+".test"), "-test.v", "-test.run", fmt.Sprintf("^%s$/^%s$", name, sub))
			search.Dir, search.Env = filepath.Join(root, pkg), searching(fmt.Sprint(mutantKey, "=", 1+i))
			out, err := search.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("%s: not noticed by %s:\n%s", m.line, m.caught, out)
			case !strings.Contains(string(out), "--- FAIL: "+m.caught):
				t.Errorf("%s: %s did not fail:\n%s", m.line, m.caught, out)
			case !strings.Contains(string(out), m.how):
				t.Errorf("%s: %s failed in another way than by %q:\n%s", m.line, m.caught, m.how, out)
			}
		})
	}
}
