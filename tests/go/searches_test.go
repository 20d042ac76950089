package tests

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"malt/internal/fleet"
)

// exploreTests runs a package's exhaustive checks, which are behind a build tag:
// see internal/explore.
func exploreTests(pkg, run string, env []string, more ...string) (output string, err error) {
	args := append([]string{"test", "-tags", "explore", "-vet", "off", "-ldflags", "-w", "-timeout", "30m", "-run", run, "-v"}, more...)
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Dir, cmd.Env = root, searching(env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// searching is the environment of a search. Its threads make much garbage and keep
// little: to collect it less often saves a fifth of the time.
func searching(env ...string) []string { return append(append(os.Environ(), "GOGC=1000"), env...) }

// explored are the packages that have such checks.
var explored = []string{"rdma/box", "rdma/membership", "rdma/remote", "rdma/rendezvous", "rdma/vote", "libmalt", "libmalt/butterfly", "libmalt/shards"}

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

// searches runs the checks of all packages and returns what they covered, as it stands
// in goldenFile.
func searches(t *testing.T, env []string, more ...string) string {
	covered := make([][]string, len(explored))
	t.Run("packages", func(t *testing.T) {
		for i, pkg := range explored {
			t.Run(pkg, func(t *testing.T) {
				t.Parallel()
				out, err := exploreTests(pkg, "^TestExplore", env, append(more, "-json")...)
				var text strings.Builder
				covered[i] = cases(pkg, out, &text)
				t.Log(text.String())
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	return strings.Join(slices.Concat(covered...), "")
}

// goldenFile says what each ordinary case covers: a change to the order of shared words
// changes a number in it. MALT_UPDATE=1 writes it anew.
const goldenFile = "testdata/explored.txt"

func golden(t *testing.T) string {
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// onlyIn reports the lines of a that b lacks.
func onlyIn(t *testing.T, what, a, b string) {
	for line := range strings.Lines(a) {
		if !strings.Contains(b, line) {
			t.Errorf("%s: %s", what, line)
		}
	}
}

// searched is what a check says that it covered.
var searched = regexp.MustCompile(`\d+ states, \d+ turns, \d+ executions`)

// cases are the lines of the file for a package, in order, from the output of go test
// as JSON, whose text is printed.
func cases(pkg, output string, text io.Writer) (lines []string) {
	for line := range strings.Lines(output) {
		var event struct{ Test, Output string }
		if json.Unmarshal([]byte(line), &event) != nil {
			event.Output = line // of the compiler
		}
		if !strings.HasPrefix(event.Output, "=== ") {
			fmt.Fprint(text, event.Output)
		}
		if found := searched.FindString(event.Output); found != "" {
			lines = append(lines, fmt.Sprintf("%s %s: %s\n", pkg, event.Test, found))
		}
	}
	slices.Sort(lines)
	return lines
}

// The protocols in every interleaving of small cases.
func TestExplore(t *testing.T) {
	heavy(t)
	got := searches(t, nil)
	if os.Getenv("MALT_UPDATE") != "" {
		if err := os.WriteFile(goldenFile, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	onlyIn(t, "expected", golden(t), got)
	onlyIn(t, "covered", got, golden(t))
}

// The same with cases that take minutes each.
func TestExploreBig(t *testing.T) {
	heavy(t)
	if os.Getenv("MALT_EXPLORE") != "big" {
		t.Skip("make explore runs this: it takes an hour")
	}
	onlyIn(t, "expected", golden(t), searches(t, []string{"MALT_EXPLORE=big"}, "-timeout", "0", "-parallel", "1"))
}

// Each step is needed: without it the search fails, in the way expected.
func TestExploreCatchesMutations(t *testing.T) {
	heavy(t)
	bin := t.TempDir()
	build := exec.Command("go", "test", "-c", "-o", bin, "-tags", "explore", "-vet", "off", "-ldflags", "-w", "-overlay", mutants(t, mutations))
	pkgs := map[string]bool{}
	for i := range mutations {
		if pkg := mutations[i].tested(); !pkgs[pkg] {
			pkgs[pkg] = true
			build.Args = append(build.Args, "./"+pkg)
		}
	}
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	slots := make(chan struct{}, 3) // some hang until their patience ends, and use no core
	for i, m := range mutations {
		t.Run(strings.ReplaceAll(m.line, " ", "_"), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			pkg := m.tested()
			name, sub, _ := strings.Cut(m.caught, "/")
			search := exec.Command(filepath.Join(bin, path.Base(pkg)+".test"), "-test.v", "-test.run", fmt.Sprintf("^%s$/^%s$", name, sub))
			search.Dir, search.Env = filepath.Join(root, pkg), searching(fmt.Sprint(mutantKey, "=", 1+i), fleet.Impatient+"=20s")
			if m.big {
				search.Env = append(search.Env, "MALT_EXPLORE=big")
			}
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
