package capi

import (
	"compress/flate"
	"debug/elf"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What the built file promises those who carry it to other machines.

func open(t *testing.T) *elf.File {
	t.Helper()
	f, err := elf.Open(library(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestSoname(t *testing.T) {
	names, err := open(t).DynString(elf.DT_SONAME)
	if err != nil || !slices.Equal(names, []string{"libmalt.so.0"}) {
		t.Errorf("SONAME %v, %v; want libmalt.so.0 alone", names, err)
	}
}

// TestNeeded: no library but libc, its loader, and those that were part of it.
func TestNeeded(t *testing.T) {
	f := open(t)
	needed, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(needed, "libc.so.6") {
		t.Errorf("needs %v, without libc.so.6", needed)
	}
	// Before glibc 2.34 the thread functions were here; without it in the list an
	// old system would not find them.
	if !slices.Contains(needed, "libpthread.so.0") {
		t.Errorf("needs %v, without libpthread.so.0", needed)
	}
	for _, lib := range needed {
		if !slices.Contains([]string{"libc.so.6", "libpthread.so.0", "libdl.so.2"}, lib) && !strings.HasPrefix(lib, "ld-linux") {
			t.Errorf("needs %s", lib)
		}
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		if paths, _ := f.DynString(tag); len(paths) > 0 {
			t.Errorf("%v %v: it would look for libraries where it was built", tag, paths)
		}
	}
}

// TestGlibc: nothing that glibc 2.17 does not have.
func TestGlibc(t *testing.T) {
	symbols, err := open(t).ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	versions := 0
	for _, s := range symbols {
		if s.Version == "" {
			if !strings.HasPrefix(s.Name, "_ITM_") && s.Name != "__gmon_start__" { // weak, of gcc
				t.Errorf("%s has no version", s.Name)
			}
			continue
		}
		versions++
		number, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok || newer(number, 2, 17) {
			t.Errorf("%s is of %s, newer than GLIBC_2.17: see capi/glibc_compat.h", s.Name, s.Version)
		}
	}
	if versions < 10 {
		t.Errorf("only %d of %d symbols have a version: were they read?", versions, len(symbols))
	}
}

// newer tells whether a version such as 2.3.4 is newer than major.minor.
func newer(version string, limit ...int) bool {
	for i, part := range strings.Split(version, ".") {
		n, err := strconv.Atoi(part)
		switch {
		case err != nil:
			return true
		case i >= len(limit):
			return false
		case n != limit[i]:
			return n > limit[i]
		}
	}
	return false
}

func TestNewer(t *testing.T) {
	for version, want := range map[string]bool{"2.2.5": false, "2.17": false, "2.17.1": false, "2.18": true, "2.34": true, "3.0": true, "PRIVATE": true} {
		if newer(version, 2, 17) != want {
			t.Errorf("newer(%q) = %v", version, !want)
		}
	}
}

// TestExports: the functions of malt.h, and nothing else.
func TestExports(t *testing.T) {
	symbols, err := open(t).DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			exported = append(exported, s.Name)
		}
	}
	slices.Sort(exported)
	if want := declared(t); !slices.Equal(exported, want) {
		t.Errorf("exports\n%v\nwant\n%v", exported, want)
	}
}

// TestStripped: no symbol table and no debugging sections, and small: what the
// wheel deflates to stays below 4.26 MB.
func TestStripped(t *testing.T) {
	f := open(t)
	for _, s := range f.Sections {
		if s.Name == ".symtab" || strings.HasPrefix(s.Name, ".debug") || strings.HasPrefix(s.Name, ".zdebug") {
			t.Errorf("section %s is left", s.Name)
		}
	}
	b, err := os.ReadFile(library(t))
	if err != nil {
		t.Fatal(err)
	}
	var n count
	z, err := flate.NewWriter(&n, flate.BestCompression)
	if err == nil {
		_, err = z.Write(b)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if n > 4.26e6 {
		t.Errorf("%d bytes deflated; at most 4,260,000 are wanted", n)
	}
}

// TestAnonymous: the file does not tell where it was built.
func TestAnonymous(t *testing.T) {
	f, err := os.Open(library(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	home, _ := os.UserHomeDir()
	for _, path := range []string{root(t), home} {
		if len(path) > 1 && strings.Contains(string(b), path+"/") {
			t.Errorf("the file holds the path %s/", path)
		}
	}
}

type count int

func (c *count) Write(p []byte) (int, error) { *c += count(len(p)); return len(p), nil }
