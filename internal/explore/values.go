package explore

import (
	"hash/maphash"
	"slices"
)

// Values is a search over values without shared memory: for rules that are pure functions,
// with the whole world, messages on their way included, in one value.
type Values[S any] struct {
	// Start is the first state. Nobody changes a state.
	Start S
	// Key appends what tells a state from others.
	Key func(b []byte, s S) []byte
	// Next calls to for each step that is possible in s. A failure is a step that Ends
	// does not count on.
	Next func(s S, to func(step uint64, failure bool, next S))
	// Name says what a step is, for traces.
	Name func(step uint64) string
	// Bad says what is wrong with a state.
	Bad func(s S) string
	// Ends, if set, tells whether a state is one that is to be reached in the end, and
	// whether it must be reachable from s by steps that are no failures.
	Ends  func(s S) (reached, must bool)
	Limit int // states after which the search is given up; 0: no limit
}

// visit is how a state was first reached.
type visit struct {
	from int32
	step uint64
}

// Run visits each state once, the nearest first, so that a failure comes with a shortest
// trace. It keeps 64 bits of the keys: see Caveats.
func (v *Values[S]) Run() (r Result) {
	at := map[uint64]int32{}
	var visits []visit
	var edges [][2]int32
	var ends, must []bool
	var layer, following []S
	var key []byte
	reach := func(from int32, step uint64, s S) int32 {
		key = v.Key(key[:0], s)
		h := maphash.Bytes(seed, key)
		n, known := at[h]
		if !known {
			n = int32(len(visits))
			at[h] = n
			visits = append(visits, visit{from, step})
			following = append(following, s)
		}
		return n
	}
	trace := func(n int32) (steps []string) {
		for ; n > 0; n = visits[n].from {
			steps = append(steps, v.Name(visits[n].step))
		}
		slices.Reverse(steps)
		return steps
	}
	defer func() { r.States, r.Executions = len(visits), 1 }()
	reach(-1, 0, v.Start)
	for n := int32(0); len(following) > 0; {
		layer, following = following, layer[:0]
		for _, s := range layer {
			if r.Failure = v.Bad(s); r.Failure != "" {
				r.Trace = trace(n)
				return r
			}
			if v.Ends != nil {
				reached, needed := v.Ends(s)
				ends, must = append(ends, reached), append(must, needed)
			}
			v.Next(s, func(step uint64, failure bool, next S) {
				r.Turns++
				if to := reach(n, step, next); v.Ends != nil && !failure && to != n {
					edges = append(edges, [2]int32{n, to})
				}
			})
			if n++; v.Limit > 0 && len(visits) >= v.Limit {
				r.GivenUp = true
				return r
			}
		}
	}
	if n := stuck(edges, ends, must); n >= 0 {
		r.Failure, r.Trace = "nothing leads to the end from here", trace(n)
	}
	return r
}

// stuck is the first state that must come to an end and cannot, or -1.
func stuck(edges [][2]int32, ends, must []bool) int32 {
	back := make([][]int32, len(ends))
	for _, e := range edges {
		back[e[1]] = append(back[e[1]], e[0])
	}
	can := slices.Clone(ends)
	var todo []int32
	for n, end := range ends {
		if end {
			todo = append(todo, int32(n))
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range back[n] {
			if !can[from] {
				can[from] = true
				todo = append(todo, from)
			}
		}
	}
	for n := range must {
		if must[n] && !can[n] {
			return int32(n)
		}
	}
	return -1
}

// Step packs up to four small numbers into a step; StepParts takes it apart.
func Step(what, a, b, c int) uint64 {
	return uint64(what)<<48 | uint64(a)<<32 | uint64(b)<<16 | uint64(c)
}

func StepParts(step uint64) (what, a, b, c int) {
	return int(step >> 48), int(step >> 32 & 0xffff), int(step >> 16 & 0xffff), int(step & 0xffff)
}
