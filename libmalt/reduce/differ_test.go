package reduce

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestDifferSeesEveryBit compares word by word, on every path, at every length of
// some masks and every misalignment, with every bit of a word changed once.
func TestDifferSeesEveryBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range paths() {
		for words := 0; words <= 3*64+2; words += stride {
			n := 4 * words
			for shift := range 8 {
				a, b := make([]byte, shift+n)[shift:], make([]byte, (shift*3)%8+n)[(shift*3)%8:]
				zero := shift%2 == 0
				for i := range b {
					if !zero {
						b[i] = byte(r.Uint32())
					}
				}
				copy(a, b)
				want := make([]uint64, Masks(n))
				for w := range words {
					if r.IntN(5) == 0 {
						bit := (w*7 + shift) % 32
						a[4*w+bit/8] ^= 1 << (bit % 8)
						want[w/64] |= 1 << (w % 64)
					}
				}
				mask := []uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), 7}
				differOn(p, mask, a, b)
				if zero {
					differOn(p, mask, a, nil)
				}
				for i, m := range want {
					if mask[i] != m {
						t.Fatalf("%v: %d words, shifted by %d, zeros %t: mask %d is %x, want %x", p, words, shift, zero, i, mask[i], m)
					}
				}
				if mask[4] != 7 {
					t.Fatalf("%v: %d words: wrote behind the masks", p, words)
				}
			}
		}
	}
}

func TestDifferRefuses(t *testing.T) {
	for what, call := range map[string]func(){
		"part of a word":    func() { Differ(make([]uint64, 1), make([]byte, 6), nil) },
		"different lengths": func() { Differ(make([]uint64, 1), make([]byte, 8), make([]byte, 4)) },
		"too few masks":     func() { Differ(make([]uint64, 1), make([]byte, maskBytes+4), nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			call()
		}()
	}
}

// Bytes per second are those read.
func BenchmarkDiffer(b *testing.B) {
	for _, size := range []int{64 << 10, 4 << 20} {
		x, y := bytes.Repeat([]byte{1}, size), bytes.Repeat([]byte{1}, size)
		mask := make([]uint64, Masks(size))
		for _, p := range paths() {
			b.Run(fmt.Sprintf("%s/%v", sizeName(size), p), func(b *testing.B) {
				b.SetBytes(int64(2 * size))
				for b.Loop() {
					differOn(p, mask, x, y)
				}
			})
		}
	}
}
