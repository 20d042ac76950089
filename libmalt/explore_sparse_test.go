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

func sparseOf(ranks int) *sparse {
	shape := spvec.Shape{Rows: 2, Width: 1, Elem: 4}
	return &sparse{
		kind: sparseModel, shape: shape, shadow: make([]byte, shape.Bytes()),
		sent: make([]uint64, ranks),
	}
}

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
	var d spvec.Update
	if err := d.Decode(u.kind, u.Data, a.s.sparse.shape, u.seq, u.read); err != nil {
		a.t.Fail("the update of clock %d from rank %d: %v", u.Clock, u.Rank, err)
		return
	}
	has := slices.Clone(a.has[u.Rank])
	d.Expand(has, a.s.sparse.shape)
	if !d.All {
		for _, r := range d.Index {
			if row(has, uint64(r)) <= row(a.has[u.Rank], uint64(r)) {
				a.t.Fail("row %d of rank %d is folded twice as %d", r, u.Rank, row(has, uint64(r)))
			}
		}
	}
	if row(has, u.Clock%2) != u.Clock || row(has, (u.Clock+1)%2) != u.Clock-1 {
		a.t.Fail("after clock %d of rank %d its rows are %d and %d", u.Clock, u.Rank, row(has, 0), row(has, 1))
	}
	a.has[u.Rank] = has
}
