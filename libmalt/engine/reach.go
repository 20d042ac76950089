package engine

import (
	"encoding/binary"
	"math"
)

// Reach is up to where the changes of a rank have come: its clock there, and how many times
// it had scattered in this era. A collective call lifts the clock alone. Call is the last one
// before which the rank is known to have changed no more.
type Reach struct{ Clock, Scatters, Call uint64 }

// Closed is the clock of a rank that has closed the vector: nobody waits for it, and it
// changes no more.
const Closed = math.MaxUint64

// ReachBytes is a reach in a message.
const ReachBytes = 24

// Put writes it to the start of b.
func (r Reach) Put(b []byte) {
	binary.LittleEndian.PutUint64(b, r.Clock)
	binary.LittleEndian.PutUint64(b[8:], r.Scatters)
	binary.LittleEndian.PutUint64(b[16:], r.Call)
}

// AppendReaches appends to list those that b has.
func AppendReaches(list []Reach, b []byte) []Reach {
	for ; len(b) > 0; b = b[ReachBytes:] {
		list = append(list, Reach{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])})
	}
	return list
}

// Before tells whether r has fewer changes than later, or an older clock.
func (r Reach) Before(later Reach) bool { return r.Clock < later.Clock || r.Scatters < later.Scatters }

// RenewReaches has ranks at clock, in a new era, but for those that have closed the vector.
func RenewReaches(list []Reach, clock uint64) {
	for r := range list {
		if list[r].Clock != Closed {
			list[r].Clock = clock
		}
		list[r].Scatters = 0
	}
}
