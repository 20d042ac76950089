//go:build explore

package libmalt

import (
	"encoding/binary"
	"slices"

	"malt/libmalt/spvec"
)

// A sparse object of the plays has two rows. At clock c its sender changes row c
// mod 2 to c: so whoever has folded the update of clock c has c in that row and c-1
// in the other, whatever it has missed in between, or a row was lost.

var twoRows = spvec.Shape{Rows: 2, Width: 1, Elem: 4}

func emptyRows(ranks int) (rows [][]byte) {
	for range ranks {
		rows = append(rows, make([]byte, 8))
	}
	return rows
}

func changeRow(data []byte, clock uint64) {
	binary.LittleEndian.PutUint32(data[4*(clock%2):], uint32(clock))
}

func row(data []byte, i uint64) uint64 { return uint64(binary.LittleEndian.Uint32(data[4*i:])) }

// judgeRows folds the rows of an update into what this rank has of its sender.
func (a *actor) judgeRows(u Update) {
	has := slices.Clone(a.has[u.Rank])
	if u.Rows == nil {
		copy(has, u.Data)
	}
	for i, r := range u.Rows {
		copy(has[4*r:4*r+4], u.Data[4*i:])
		if row(has, uint64(r)) <= row(a.has[u.Rank], uint64(r)) {
			a.t.Fail("row %d of rank %d is folded twice as %d", r, u.Rank, row(has, uint64(r)))
		}
	}
	if row(has, u.Clock%2) != u.Clock || row(has, (u.Clock+1)%2) != u.Clock-1 {
		a.t.Fail("after clock %d of rank %d its rows are %d and %d", u.Clock, u.Rank, row(has, 0), row(has, 1))
	}
	a.has[u.Rank] = has
}
