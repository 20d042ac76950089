package reduce

import (
	"bytes"
	"fmt"
	"testing"
)

// Bytes per second are those that must move: k updates and the vector itself
// are read, the vector is written. BenchmarkFold/copy, where two move, is the
// measure to hold the others against. Memory that was never written would be
// the kernel's one page of zeros: hence Repeat.
func BenchmarkFold(b *testing.B) {
	sizes := []int{1 << 10, 64 << 10, 1 << 20, 16 << 20}
	for _, size := range sizes {
		dst, src := bytes.Repeat([]byte{1}, size), bytes.Repeat([]byte{2}, size)
		b.Run(fmt.Sprintf("copy/%s", sizeName(size)), func(b *testing.B) {
			b.SetBytes(int64(2 * size))
			for b.Loop() {
				Copy(dst, src)
			}
		})
	}
	for _, kind := range []struct {
		name     string
		op       Op
		weighted bool
	}{{"mean", Mean, false}, {"weighted", Mean, true}, {"max", Max, false}} {
		for _, dt := range allDTypes {
			for _, k := range []int{1, 3, 7, 31} {
				for _, size := range sizes {
					srcs := make([][]byte, k+1)
					var weights []float64
					for i := range srcs {
						srcs[i] = bytes.Repeat([]byte{byte(i)}, size)
						if kind.weighted {
							weights = append(weights, float64(i+1))
						}
					}
					for _, p := range paths() {
						b.Run(fmt.Sprintf("%s/%v/k=%d/%s/%v", kind.name, dt, k, sizeName(size), p), func(b *testing.B) {
							b.SetBytes(int64((k + 2) * size))
							for b.Loop() {
								foldOn(p, kind.op, dt, srcs[:1], srcs, weights)
							}
						})
					}
				}
			}
		}
	}
}

func sizeName(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%dMiB", n>>20)
	}
	return fmt.Sprintf("%dKiB", n>>10)
}
