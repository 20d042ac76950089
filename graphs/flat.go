package graphs

import "math/bits"

// Flat graphs look the same from every rank: rank n sends to (n + offset) mod N
// for each offset of a list. In the lists below L = floor(log2 N), which is 0
// for a single rank. Offsets are between 1 and N-1 and never repeat; the reason
// is given where it is not plain.

// flat makes a family out of a function from size to offsets.
func flat(offsets func(size int) []int) func(int, string) (*Graph, error) {
	return func(size int, _ string) (*Graph, error) {
		return &Graph{size: size, offsets: offsets(size)}, nil
	}
}

// onePeer goes through the offsets of chord, one at each clock (Ying et al.,
// NeurIPS 2021): for N a power of two, L clocks average all ranks exactly.
func onePeer(size int, _ string) (*Graph, error) {
	return &Graph{size: size, offsets: chordOffsets(size), onePeer: true}, nil
}

func floorLog2(n int) int { return bits.Len(uint(n)) - 1 }

func allOffsets(size int) []int {
	offsets := make([]int, size-1)
	for i := range offsets {
		offsets[i] = i + 1
	}
	return offsets
}

func ringOffsets(size int) []int {
	if size == 1 {
		return nil
	}
	return []int{1}
}

// chordOffsets halves: floor(N/2), floor(N/4), …, 1. Each is at least twice the
// next.
func chordOffsets(size int) []int {
	offsets := make([]int, floorLog2(size))
	for i := range offsets {
		offsets[i] = size >> (i + 1)
	}
	return offsets
}

// haltonOffsets takes L terms of the van der Corput sequence from the first one
// with L bits on. Its terms 2^(L-1)+i, i < L, all have exactly L bits, so they
// are different multiples of 1/2^L other than 0; N is at least 2^L, so their
// floors are different too, and none is 0. The first is 1/2^L and gives offset
// 1: the graph contains a ring, and so is strongly connected for every N.
func haltonOffsets(size int) []int {
	count := floorLog2(size)
	if count == 0 {
		return nil
	}
	return vanDerCorput(size, 1<<(count-1), count)
}

// haltonPaperOffsets starts the sequence at its beginning, as printed in MALT
// section 3.4: N/2, N/4, 3N/4, N/8, … For N = 8, 12, 16, 24 and others all
// offsets share a factor with N, and the ranks fall into groups that never mix.
// The first L terms have at most L bits, so they do not repeat either.
func haltonPaperOffsets(size int) []int {
	return vanDerCorput(size, 1, floorLog2(size))
}

// vanDerCorput returns floor(size·φ(n)) for count values of n from first on,
// where φ(n), the radical inverse, mirrors the binary digits of n at the point.
func vanDerCorput(size, first, count int) []int {
	offsets := make([]int, count)
	for i := range offsets {
		high, _ := bits.Mul64(bits.Reverse64(uint64(first+i)), uint64(size))
		offsets[i] = int(high)
	}
	return offsets
}
