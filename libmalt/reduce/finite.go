package reduce

import (
	"encoding/binary"
	"math"
)

// Results of looking for the source that has brought NaN or infinity, beside its index.
const (
	None    = -1 // nothing: the result is finite
	Unknown = -2 // no source, since all had it before, or the sum is too large; or one of several
)

// tile is how far before a result that is not finite a kernel ends at most: MALT_TILE.
const tile = 256

// culprit is the source that has brought NaN or infinity into a result: the first which has one
// at a place where another source has none. The bytes lo to hi are looked at, and no others: an
// array that diverges soon has NaN everywhere.
func culprit(dt DType, srcs [][]byte, lo, hi int) int {
	for at := lo; at < hi; at += dt.Size() {
		from, others := None, false
		for i, s := range srcs {
			if finite(dt, s[at:]) {
				others = true
			} else if from == None {
				from = i
			}
		}
		if from != None && others {
			return from
		}
	}
	return Unknown
}

func finite(dt DType, b []byte) bool {
	if dt == Float32 {
		v := math.Float32frombits(binary.NativeEndian.Uint32(b))
		return v-v == 0
	}
	v := math.Float64frombits(binary.NativeEndian.Uint64(b))
	return v-v == 0
}

// Earlier is what brings it into the results of two folds, a before b.
func Earlier(a, b int) int {
	if a >= 0 || b == None {
		return a
	}
	return b
}
