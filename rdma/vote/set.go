package vote

import (
	"iter"
	"math/bits"
	"slices"
)

// Set is a set of hosts or of ranks, as a bitmap. Sets of one kind have the same length in
// a job. Sets inside messages and views are shared: nobody changes them.
type Set []uint64

// NewSet has room for the numbers below n.
func NewSet(n int) Set { return make(Set, (n+63)/64) }

// SetOf is a set of some numbers below n.
func SetOf(n int, numbers ...int) Set {
	s := NewSet(n)
	for _, i := range numbers {
		s.Add(i)
	}
	return s
}

// Everyone is the set of all numbers below n.
func Everyone(n int) Set {
	s := NewSet(n)
	for i := range n {
		s.Add(i)
	}
	return s
}

func (s Set) Has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s Set) Add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s Set) Remove(i int)   { s[i/64] &^= 1 << (i % 64) }

func (s Set) Count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// All are the numbers in the set, ascending.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for at, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(64*at + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// With, And, Or and Less make new sets.
func (s Set) With(i int) Set {
	s = slices.Clone(s)
	s.Add(i)
	return s
}

func (s Set) And(t Set) Set  { return s.each(t, func(a, b uint64) uint64 { return a & b }) }
func (s Set) Or(t Set) Set   { return s.each(t, func(a, b uint64) uint64 { return a | b }) }
func (s Set) Less(t Set) Set { return s.each(t, func(a, b uint64) uint64 { return a &^ b }) }

func (s Set) each(t Set, f func(a, b uint64) uint64) Set {
	r := make(Set, len(s))
	for i := range s {
		r[i] = f(s[i], t[i])
	}
	return r
}

func (s Set) Empty() bool       { return s.Count() == 0 }
func (s Set) Within(t Set) bool { return s.Less(t).Empty() }
func (s Set) Equals(t Set) bool { return slices.Equal(s, t) }
