package graphs

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"malt/internal/say"
)

// maxRandomEdges bounds the memory and time of a random graph, whose edges are
// all drawn on every rank: below a few seconds.
const maxRandomEdges = 1 << 20

// random draws a graph in which every rank has k receivers and k senders, the
// same on every rank of the job and in every version of this package:
//
//  1. Shuffle the ranks (Fisher and Yates, from the last place down) into p.
//  2. Let p[i] send to p[i+1], …, p[i+k], indices mod N.
//  3. 4·N·(k-1) times: take the edges at places i of rank a and j of rank b,
//     drawing a, b, i, j in this order, and never the first place, p[i] to
//     p[i+1]; exchange their receivers unless a rank would then send to itself
//     or twice to another.
//
// Equal numbers of senders make the plain mean of all ranks what averaging
// converges to. The edges that step 3 leaves alone are a ring through all
// ranks, so the graph is strongly connected whatever the seed.
func random(size int, arg string) (*Graph, error) {
	k, seed, err := parseRandom(size, arg)
	if err != nil {
		return nil, err
	}
	lists := make([][]int, size)
	if size > 1 {
		lists = drawRegular(size, k, splitMix(seed))
	}
	g := fromValid(lists)
	g.spec = "random:" + strconv.Itoa(k)
	if seed != 0 {
		g.spec += ":" + strconv.FormatUint(seed, 10)
	}
	return g, nil
}

func parseRandom(size int, arg string) (k int, seed uint64, err error) {
	degree, tail, hasSeed := strings.Cut(arg, ":")
	if k, err = strconv.Atoi(degree); err != nil || k < 1 {
		return 0, 0, say.Errorf(nil, "graph random: %s is not a number of receivers", quote(degree)).Try("Write random:K or random:K:SEED with K from 1 to %d.", max(1, size-1))
	}
	// A lone rank has no receivers whatever k is, so that a script written for
	// many ranks also runs alone.
	if size > 1 && k >= size {
		return 0, 0, say.Errorf(nil, "graph random:%d needs %d other ranks; with %d ranks each has %d", k, k, size, size-1).Try("Take random:%d or all.", size-1)
	}
	if size > 1 && k > maxRandomEdges/size {
		return 0, 0, say.Errorf(nil, "graph random:%d of %d ranks has %d edges; the limit is %d", k, size, k*size, maxRandomEdges).Try("Take random:%d or less, or all.", maxRandomEdges/size)
	}
	if hasSeed {
		if seed, err = strconv.ParseUint(tail, 10, 64); err != nil {
			return 0, 0, say.Errorf(nil, "graph random: seed %s is not a whole number from 0 to 2^64-1", quote(tail)).Try("Write, for example, random:%d:1.", k)
		}
	}
	return k, seed, nil
}

func drawRegular(size, k int, rng splitMix) [][]int {
	order := make([]int, size)
	for i := range order {
		order[i] = i
	}
	for i := size - 1; i > 0; i-- {
		j := rng.below(i + 1)
		order[i], order[j] = order[j], order[i]
	}
	lists := make([][]int, size)
	for i, rank := range order {
		lists[rank] = make([]int, k)
		for j := range k {
			lists[rank][j] = order[(i+1+j)%size]
		}
	}
	if k == 1 {
		return lists
	}
	for range 4 * size * (k - 1) {
		a, b := rng.below(size), rng.below(size)
		i, j := 1+rng.below(k-1), 1+rng.below(k-1)
		exchange(lists, a, i, b, j)
	}
	return lists
}

// exchange swaps the i-th receiver of a with the j-th of b if both lists stay
// valid.
func exchange(lists [][]int, a, i, b, j int) {
	toA, toB := lists[a][i], lists[b][j]
	if toA == b || toB == a || slices.Contains(lists[a], toB) || slices.Contains(lists[b], toA) {
		return
	}
	lists[a][i], lists[b][j] = toB, toA
}

// splitMix is the SplitMix64 generator (Steele, Lea and Flood, OOPSLA 2014),
// here because a graph must not change with a library's version.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1: the high word of the product.
func (s *splitMix) below(n int) int {
	high, _ := bits.Mul64(s.next(), uint64(n))
	return int(high)
}
