package libmalt

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"malt/libmalt/rule"
)

// TestTapeIsBounded: a rank says once that its file is full, and writes no more; what it has
// written is read back.
func TestTapeIsBounded(t *testing.T) {
	folder := t.TempDir()
	g := rule.Gathered{7, 12, 1, 11}
	for r := range 2 {
		tape, err := newTape(r, 2, folder, "")
		if err != nil {
			t.Fatal(err)
		}
		tape.room = 30 // of lines of 12 bytes
		for i := range 6 {
			if ends := tape.Record(g); (ends != nil) != (i == 2) {
				t.Errorf("line %d: %v", i, ends)
			}
		}
		if err := tape.Close(); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(tapeName(folder, r, 2)); err != nil || string(text) != "[7,12,1,11]\n[7,12,1,11]\n[7,12,1,11]\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
	tape, err := newTape(0, 2, "", folder)
	if err != nil {
		t.Fatal(err)
	}
	p := tape.Replay(7)
	for range 3 {
		if got, more := p.Next(); !more || !reflect.DeepEqual(got, g) {
			t.Errorf("got %+v, %v", got, more)
		}
		p.Gathered()
	}
	if _, more := p.Next(); more {
		t.Error("more than was written")
	}
	if tape, err = newTape(1, 2, "", folder); err != nil || !tape.Replay(7).Reads(0, 11) {
		t.Errorf("rank 0 does not read clock 11: %v", err)
	}
}

// TestTapeOverwritesNothing: a second run does not record over the first, unless that has recorded nothing.
func TestTapeOverwritesNothing(t *testing.T) {
	folder := t.TempDir()
	for range 2 {
		tape, err := newTape(0, 2, folder, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := tape.Close(); err != nil {
			t.Fatal(err)
		}
	}
	name := tapeName(folder, 0, 2)
	if err := os.WriteFile(name, []byte("[7,12,1,11]\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := newTape(0, 2, folder, ""); err == nil || !strings.Contains(err.Error(), folder+" has a recording of 2 ranks") {
		t.Errorf("%v, want that there is one", err)
	}
	if text, err := os.ReadFile(name); err != nil || len(text) == 0 {
		t.Errorf("%q, %v: the first recording is gone", text, err)
	}
}
