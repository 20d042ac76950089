package graphs

import (
	"fmt"
	"testing"
)

// What making a vector costs on every rank: the graph and its check.
func BenchmarkParse(b *testing.B) {
	for _, spec := range []string{"all", "halton", "star", "random:8"} {
		for _, size := range []int{8, 1024} {
			if spec == "random:8" && size == 8 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", spec, size), func(b *testing.B) {
				for b.Loop() {
					if err := parse(b, spec, size).CheckConnected(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkMeasure(b *testing.B) {
	for _, spec := range []string{"halton", "hypercube", "random:6"} {
		for _, size := range []int{16, 256} {
			g := parse(b, spec, size)
			b.Run(fmt.Sprintf("%s/%d", spec, size), func(b *testing.B) {
				for b.Loop() {
					measure(b, g)
				}
			})
		}
	}
}
