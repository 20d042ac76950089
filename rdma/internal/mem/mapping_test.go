package mem

import (
	"errors"
	"math"
	"os"
	"testing"
	"unsafe"
)

func TestMapIsZeroedAlignedAndWritable(t *testing.T) {
	page := os.Getpagesize()
	for _, n := range []int{0, 1, page - 1, page, page + 1, 3<<20 + 5, step + 1} {
		b, err := Map(n)
		if err != nil {
			t.Fatalf("Map(%d): %v", n, err)
		}
		if len(b) != n {
			t.Errorf("Map(%d) has %d bytes", n, len(b))
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); at == 0 || at%uintptr(page) != 0 {
			t.Errorf("Map(%d) starts at %#x, not at a page", n, at)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("Map(%d): byte %d is %d, expected 0", n, i, b[i])
			}
			b[i] = 1
		}
		if err := Unmap(b); err != nil {
			t.Errorf("Unmap: %v", err)
		}
	}
}

func TestMapRefusesWhatCannotBe(t *testing.T) {
	for _, n := range []int{1 << 46, math.MaxInt} {
		b, err := Map(n)
		var short *ShortError
		if !errors.As(err, &short) || b != nil {
			t.Fatalf("Map(%d) = %v, %v; expected a *ShortError", n, b, err)
		}
		if short.Want != uint64(n) || short.Limit == "" {
			t.Errorf("Map(%d): %+v", n, short)
		}
	}
	if _, err := Map(-1); err == nil {
		t.Error("Map(-1) succeeded")
	}
}

func TestUnmapOfNothing(t *testing.T) {
	if err := Unmap(nil); err != nil {
		t.Error(err)
	}
}
