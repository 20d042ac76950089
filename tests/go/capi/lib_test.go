// Package capi holds the tests of libmalt.so as a C programmer has it: the built
// file, and programs that plain cc builds with malt.h and links with it.
//
// The file is build/libmalt.so of the checkout, or what MALT_LIB names. The tests
// fail where it is missing: capi/build.sh makes it.
package capi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"malt/internal/fleet"
)

// limit ends a rank that hangs, with a failure.
var limit = fleet.Patience

// root is the checkout.
func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// library is the libmalt.so under test.
func library(t testing.TB) string {
	t.Helper()
	path := os.Getenv("MALT_LIB")
	if path == "" {
		path = filepath.Join(root(t), "build", "libmalt.so")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no library to test: %v; capi/build.sh makes it", err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// compile builds a C program with plain cc, all warnings being errors.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	lib := filepath.Dir(library(t))
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	args := append([]string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-D_GNU_SOURCE"}, flags...)
	args = append(args, "-I"+filepath.Join(root(t), "capi"), source, "-o", program,
		"-L"+lib, "-lmalt", "-Wl,-rpath,"+lib, "-lm", "-pthread")
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", cc, strings.Join(args, " "), err, out)
	}
	return program
}

// job is some ranks of one program, started as a launcher would.
type job struct {
	ranks []*exec.Cmd
	out   []bytes.Buffer
}

// launch starts size ranks; edit, which may be nil, changes a rank's command
// before it starts.
func launch(t testing.TB, size int, program string, args []string, edit func(rank int, c *exec.Cmd)) *job {
	t.Helper()
	var id [8]byte
	rand.Read(id[:])
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	j := &job{out: make([]bytes.Buffer, size)}
	for rank := range size {
		c := exec.CommandContext(ctx, program, args...)
		c.Env = append(withoutMalt(os.Environ()),
			fmt.Sprintf("MALT_RANK=%d", rank), fmt.Sprintf("MALT_SIZE=%d", size),
			"MALT_STORE=local:"+hex.EncodeToString(id[:]), "MALT_TOKEN=a token of the tests", "MALT_TIMEOUT=120")
		c.Stdout, c.Stderr = &j.out[rank], &j.out[rank]
		c.WaitDelay = time.Second // a child of the rank may hold its output
		if edit != nil {
			edit(rank, c)
		}
		if err := c.Start(); err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
		j.ranks = append(j.ranks, c)
	}
	return j
}

// wait is the end of a job whose ranks must all succeed. It returns what they
// printed.
func (j *job) wait(t testing.TB) []string {
	t.Helper()
	var out []string
	for rank, c := range j.ranks {
		if err := c.Wait(); err != nil {
			t.Errorf("rank %d of %d: %v\n%s", rank, len(j.ranks), err, j.out[rank].String())
		}
		out = append(out, j.out[rank].String())
	}
	return out
}

// withoutMalt is env without what would make a test's process a rank.
func withoutMalt(env []string) (clean []string) {
	for _, v := range env {
		if !strings.HasPrefix(v, "MALT_") {
			clean = append(clean, v)
		}
	}
	return clean
}

func source(name string) string { return filepath.Join("testdata", name) }
