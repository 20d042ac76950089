package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"malt/internal/say"
	"malt/libmalt"
	"malt/rdma"
)

// Codes of malt.h, by its own text: the test must not take them from where the
// code under test does.
func statuses(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("malt.h")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var name string
		var value int
		if n, _ := fmt.Sscanf(strings.TrimSpace(line), "MALT_%s = %d,", &name, &value); n == 2 && value <= 0 {
			found[name] = value
		}
	}
	if len(found) != 17 {
		t.Fatalf("found %d codes in malt.h: %v", len(found), found)
	}
	return found
}

func TestCodes(t *testing.T) {
	codes := statuses(t)
	dead := &rdma.PeerError{Rank: 2, Op: "barrier", Err: errors.New("killed")}
	_, missing := os.Open("/nowhere/at/all")
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "OK"},
		{badArgument("x"), "EINVAL"},
		{libmalt.ErrInvalid, "EINVAL"},
		{say.Errorf(errNotInit, "x"), "EINIT"},
		{&handleError{0, kindVector}, "EHANDLE"},
		{libmalt.ErrClosed, "EHANDLE"},
		{libmalt.ErrBusy, "EBUSY"},
		{libmalt.ErrTimeout, "ETIMEOUT"},
		{context.DeadlineExceeded, "ETIMEOUT"},
		{dead, "EPEER"},
		{errors.Join(libmalt.ErrTimeout, dead), "EPEER"},
		{libmalt.ErrLeft, "ELEFT"},
		{rdma.ErrLeft, "ELEFT"},
		{libmalt.ErrMismatch, "EMISMATCH"},
		{&rdma.MismatchError{Name: "w"}, "EMISMATCH"},
		{rdma.ErrExpelled, "EEXPELLED"},
		{rdma.ErrConfig, "EINVAL"},
		{rdma.ErrNoMemory, "ENOMEM"},
		{rdma.ErrNotSupported, "EUNSUPPORTED"},
		{libmalt.ErrState, "ESTATE"},
		{rdma.ErrRankTaken, "ESTATE"},
		{libmalt.ErrCancelled, "ECANCELLED"},
		{context.Canceled, "ECANCELLED"},
		{errors.Join(libmalt.ErrTimeout, context.Canceled), "ECANCELLED"},
		{missing, "EIO"},
		{rdma.ErrCorrupt, "EINTERNAL"},
		{&panicError{value: libmalt.ErrTimeout}, "EINTERNAL"},
		{errors.New("anything else"), "EINTERNAL"},
	} {
		want, ok := codes[c.want]
		if !ok {
			t.Fatalf("malt.h has no MALT_%s", c.want)
		}
		for _, err := range []error{c.err, fmt.Errorf("around it: %w", c.err)} {
			if c.err == nil && err != nil {
				continue
			}
			if got := int(code(err)); got != want {
				t.Errorf("%v is %d, want MALT_%s (%d)", err, got, c.want, want)
			}
		}
	}
}

// TestEverySentinelHasACode reads the error values that libmalt and rdma declare
// and fails for one that no line of TestCodes' subject knows.
func TestEverySentinelHasACode(t *testing.T) {
	known, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	alias := map[string]string{
		// Declared in libmalt as other names of the same values.
		"rdma.ErrNotSupported": "libmalt.ErrUnsupported",
		"rdma.ErrNoMemory":     "libmalt.ErrNoMemory",
		"rdma.ErrRankTaken":    "libmalt.ErrRankTaken",
		// A defect, as all that no line knows.
		"rdma.ErrCorrupt": "C.MALT_EINTERNAL",
		"rdma.ErrClosed":  "C.MALT_EINTERNAL",
	}
	found := 0
	for _, pkg := range []string{"libmalt", "rdma"} {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", pkg, "errors.go"), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if ok && strings.HasPrefix(v.Names[0].Name, "Err") {
				found++
				name := pkg + "." + v.Names[0].Name
				if other, ok := alias[name]; ok {
					name = other
				}
				if !strings.Contains(string(known), name) {
					t.Errorf("errors.go gives %s no code", name)
				}
			}
			return true
		})
	}
	if found < 12 {
		t.Errorf("found only %d sentinels", found)
	}
}

func TestPanicNamesItsPlace(t *testing.T) {
	err := func() (err error) {
		defer func() { err = &panicError{recover(), panicSite()} }()
		var none []int
		return fmt.Errorf("never: %d", none[3])
	}()
	for _, want := range []string{"internal error", "index out of range [3]", "errors_test.go:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q has no %q", err, want)
		}
	}
}

// TestPanicBecomesStatus: what every exported function begins with.
func TestPanicBecomesStatus(t *testing.T) {
	status := code(nil)
	func() {
		defer caught(&status)
		panic("on purpose")
	}()
	if want := statuses(t)["EINTERNAL"]; int(status) != want {
		t.Errorf("status %d, want %d", status, want)
	}
	status = code(nil)
	func() { defer caught(&status) }()
	if status != 0 {
		t.Errorf("status %d without a panic", status)
	}
}

// TestEveryExportIsGuarded: a panic that leaves an exported function ends the
// caller's process, so each defers caught before it does anything else.
func TestEveryExportIsGuarded(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "maltGo") {
				continue
			}
			found++
			guarded := false
			for _, stmt := range fn.Body.List[:min(3, len(fn.Body.List))] {
				if d, ok := stmt.(*ast.DeferStmt); ok {
					if callee, ok := d.Call.Fun.(*ast.Ident); ok && callee.Name == "caught" {
						guarded = true
					}
				}
			}
			if !guarded {
				t.Errorf("%s: %s does not defer caught", name, fn.Name.Name)
			}
		}
	}
	if found < 30 {
		t.Errorf("found only %d exported functions", found)
	}
}

// Another rank's words have no effect on a terminal.
func TestWordsOfOthersArePrintable(t *testing.T) {
	said := "it gave up: ValueError: \x1b[2Jall is well\x07\u202e\u2066\r\x9b31m\nin line 3:\tmäh"
	i := infoOf(&rdma.PeerError{Rank: 1, Kind: rdma.Failed, Err: errors.New(said)})
	const want = "it gave up: ValueError: ?[2Jall is well????\ufffd31m\nin line 3:\tmäh"
	if i.why != want || !strings.HasSuffix(i.What, i.why) {
		t.Errorf("%q, in %q", i.why, i.What)
	}
}
