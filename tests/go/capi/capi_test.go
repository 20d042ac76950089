package capi

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Each program of testdata holds its own checks; these tests build them and run
// their ranks.

func TestArguments(t *testing.T) {
	p := compile(t, source("arguments.c"))
	launch(t, 1, p, nil, func(_ int, c *exec.Cmd) {
		c.Env = append(withoutMalt(c.Env), "WANT_VERSION="+version(t))
	}).wait(t)
}

func TestHandles(t *testing.T) { launch(t, 1, compile(t, source("handles.c")), nil, nil).wait(t) }
func TestThreads(t *testing.T) { launch(t, 1, compile(t, source("threads.c")), nil, nil).wait(t) }

func TestFork(t *testing.T) {
	p := compile(t, source("fork.c"))
	for _, size := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { launch(t, size, p, nil, nil).wait(t) })
	}
}

// TestForkCoversHeader holds fork.c to every function of the header but those
// that it says are exempt.
func TestForkCoversHeader(t *testing.T) {
	text, err := os.ReadFile(source("fork.c"))
	if err != nil {
		t.Fatal(err)
	}
	exempt := []string{"malt_abi_version", "malt_version", "malt_errmsg", "malt_error", "malt_look_up", "malt_on_long_wait", "malt_on_death", "malt_on_trouble", "malt_rank", "malt_size", "malt_local_rank", "malt_generation"}
	for _, name := range declared(t) {
		if !slices.Contains(exempt, name) && !strings.Contains(string(text), "REFUSED("+name+"(") {
			t.Errorf("fork.c does not call %s", name)
		}
	}
}

func TestFolds(t *testing.T) {
	for _, name := range []string{"folds.c", "sparse.c", "ids.c"} {
		p := compile(t, source(name))
		for _, size := range []int{1, 2, 3, 5} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) { launch(t, size, p, nil, nil).wait(t) })
		}
	}
}

func TestBeyondMemory(t *testing.T) {
	p := compile(t, source("beyond.c"))
	for _, size := range []int{1, 4} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { launch(t, size, p, nil, nil).wait(t) })
	}
}

func TestErrors(t *testing.T) {
	launch(t, 3, compile(t, source("errors.c")), nil, nil).wait(t)
}

func TestTimeouts(t *testing.T) {
	p := compile(t, source("timeouts.c"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	launch(t, 2, p, nil, func(rank int, c *exec.Cmd) {
		c.ExtraFiles = []*os.File{r, w} // 3 and 4 in the rank
		c.Env = append(c.Env, "PIPE_IN=3", "PIPE_OUT=4")
	}).wait(t)
}

// TestSurvivors: a program in C goes on after deaths, and says to its launcher that it does, and that it has left.
func TestSurvivors(t *testing.T) {
	p := compile(t, source("survive.c"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var end syscall.Stat_t
	if err := syscall.Fstat(int(w.Fd()), &end); err != nil {
		t.Fatal(err)
	}
	j := launch(t, 3, p, nil, func(_ int, c *exec.Cmd) {
		c.ExtraFiles = []*os.File{w} // 3 in the rank
		c.Env = append(c.Env, fmt.Sprintf("MALT_REPORT=3:%d", end.Ino))
	})
	w.Close()
	for rank, c := range j.ranks {
		_ = c.Wait()
		how := c.ProcessState.Sys().(syscall.WaitStatus)
		if rank == 0 && how != 0 || rank > 0 && how.Signal() != syscall.SIGKILL {
			t.Errorf("rank %d: %v\n%s", rank, c.ProcessState, j.out[rank].String())
		}
	}
	said, err := io.ReadAll(r)
	heard := map[string]int{}
	for line := range strings.Lines(string(said)) {
		heard[strings.TrimSpace(line)]++
	}
	want := map[string]int{`{"meets": 3}`: 6, `{"meets": null}`: 3, `{"meets": 0}`: 3, `{"survives": 1}`: 3, `{"left": true}`: 1}
	if err != nil || !maps.Equal(heard, want) || !strings.HasSuffix(string(said), "{\"survives\": 1}\n{\"left\": true}\n") {
		t.Errorf("the launcher hears %q (%v)", said, err)
	}
}

// TestSentFaults: Go's own handlers would print all stacks, wait ten seconds for
// more of them, and abort.
func TestSentFaults(t *testing.T) {
	p := compile(t, source("signals.c"))
	for _, sent := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE} {
		j := launch(t, 1, p, nil, func(_ int, c *exec.Cmd) { c.Env = append(c.Env, fmt.Sprintf("SIGNAL=%d", sent)) })
		_ = j.ranks[0].Wait()
		if how := j.ranks[0].ProcessState.Sys().(syscall.WaitStatus); !how.Signaled() || how.Signal() != sent || j.out[0].Len() > 0 {
			t.Errorf("%v sent: %v\n%s", sent, j.ranks[0].ProcessState, j.out[0].String())
		}
	}
}

// TestMissingRank starts rank 0 of 2 alone.
func TestMissingRank(t *testing.T) {
	launch(t, 1, compile(t, source("missing.c")), nil, func(_ int, c *exec.Cmd) {
		c.Env = append(c.Env, "MALT_SIZE=2")
	}).wait(t)
}

func TestDoctor(t *testing.T) {
	out := launch(t, 1, compile(t, source("doctor.c")), nil, nil).wait(t)[0]
	var d struct {
		Version, System, Kernels string
		ABI                      int
		Cores                    struct{ Online, Usable int }
		Memory                   struct {
			Total, Free uint64
			Limit       string
		}
		OpenFiles struct {
			Used       int
			Soft, Hard uint64
		} `json:"open_files"`
		Transports []struct {
			Name  string
			Works bool
			Why   string
		}
		Fabric struct {
			State, Wanted, Provider, Device, Library, Why string
			Hardware                                      bool
		}
	}
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if d.Version != version(t) || d.ABI != 3 || d.Kernels == "" || !strings.Contains(d.System, runtime.GOARCH) {
		t.Errorf("version, ABI, kernels or system: %+v", d)
	}
	if n := runtime.NumCPU(); d.Cores.Online != n || d.Cores.Usable < 1 || d.Cores.Usable > n {
		t.Errorf("cores %+v, want %d online", d.Cores, n)
	}
	if m := d.Memory; m.Total == 0 || m.Free == 0 || m.Free > m.Total || m.Limit == "" {
		t.Errorf("memory %+v", m)
	}
	if f := d.OpenFiles; f.Used < 3 || uint64(f.Used) > f.Soft || f.Soft > f.Hard {
		t.Errorf("open files %+v", f)
	}
	works := map[string]bool{}
	for _, tr := range d.Transports {
		works[tr.Name] = tr.Works
		if tr.Works != (tr.Why == "") {
			t.Errorf("transport %s works: %v, but why not: %q", tr.Name, tr.Works, tr.Why)
		}
	}
	if !works["inmem"] || !works["shm"] {
		t.Errorf("transports %+v, want inmem and shm to work", d.Transports)
	}
	if f := d.Fabric; f.State == "" || (f.State == "works") != (f.Why == "") {
		t.Errorf("fabric %+v", f)
	}
}

// TestHeaderAlone compiles malt.h as the first thing of a C and a C++ file.
func TestHeaderAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alone.c")
	if err := os.WriteFile(file, []byte("#include <malt.h>\nint unused;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"cc", "-std=c99", "-pedantic"}, {"c++", "-x", "c++", "-std=c++11", "-pedantic"}} {
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Logf("no %s here: not tried", args[0])
			continue
		}
		args = append(args, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"+filepath.Join(root(t), "capi"), file)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// version is what the VERSION file says.
func version(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), "VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// declared lists the functions of malt.h.
func declared(t testing.TB) (names []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), "capi", "malt.h"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^[a-z][^(\n]*[ *](malt_\w+)\([^*]`).FindAllSubmatch(b, -1) {
		if !strings.HasPrefix(string(m[0]), "typedef") {
			names = append(names, string(m[1]))
		}
	}
	if len(names) < 40 {
		t.Fatalf("found only %d functions in malt.h: %v", len(names), names)
	}
	slices.Sort(names)
	return names
}
