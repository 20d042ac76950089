package libmalt

import (
	"slices"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
	"malt/rdma/auto"
)

// keep collects every rank's bytes.
type keep struct{ parts [][]byte }

func (k *keep) Begin(c *core.Collective) error {
	k.parts = make([][]byte, c.Job.Size)
	return nil
}

// expect makes room in the heap, where the kernel would kill for what is not
// there.
func (k *keep) Expect(rank int, total uint64) error {
	if total > core.ChunkBytes {
		if free, limit := auto.FreeMemory(); total > free {
			return say.Errorf(ErrNoMemory, "rank %d sends %d bytes, and %d are free within %s", rank, total, free, limit).More("out-of-memory")
		}
	}
	k.parts[rank] = make([]byte, 0, total)
	return nil
}

func (k *keep) Chunk(c *core.Collective, rank, _ int, b []byte) bool {
	k.parts[rank] = append(k.parts[rank], b...)
	c.Taken(rank, len(b))
	return true
}

func (k *keep) Finish(c *core.Collective) { k.parts[c.Job.Rank] = append([]byte{}, c.Data...) }

// combine folds the ranks' data chunk by chunk, in the order of ranks, so that
// all ranks compute the same bits. dst is written when all is there: at an
// error it is as it was.
type combine struct {
	op      reduce.Op
	runs    []reduce.Run
	dst     []byte
	scratch []byte   // the result so far
	chunks  [][]byte // by rank, those that wait for the others
	terms   [][]byte // of the view
}

func (m *combine) Begin(c *core.Collective) (err error) {
	m.chunks, m.scratch = make([][]byte, c.Job.Size), nil
	if len(c.Ranks()) > 1 {
		m.scratch, err = c.Job.Scratch(len(m.dst))
	}
	return err
}

func (m *combine) Expect(rank int, total uint64) error {
	return expectBytes(rank, total, len(m.dst))
}

func expectBytes(rank int, total uint64, want int) error {
	if total != uint64(want) {
		return say.Errorf(rdma.ErrCorrupt, "rank %d sends %d bytes, expected %d", rank, total, want)
	}
	return nil
}

func (m *combine) Chunk(c *core.Collective, rank, off int, b []byte) bool {
	m.chunks[rank] = b
	for _, r := range c.Ranks() {
		if r != c.Job.Rank && (m.chunks[r] == nil || c.Got(r) != off) {
			return false
		}
	}
	m.chunks[c.Job.Rank] = c.Data[off : off+len(b)]
	m.terms = m.terms[:0]
	for _, r := range c.Ranks() {
		m.terms = append(m.terms, m.chunks[r])
	}
	reduce.FoldRuns(m.op, m.runs, off, m.scratch[off:off+len(b)], m.terms, nil, 0)
	for _, r := range c.Ranks() {
		m.chunks[r] = nil
		if r != c.Job.Rank {
			c.Taken(r, len(b))
		}
	}
	return true
}

func (m *combine) Finish(*core.Collective) {
	if m.scratch != nil {
		for _, r := range m.runs { // what lies between them was not folded
			reduce.Copy(m.dst[r.Off:r.Off+r.Bytes], m.scratch[r.Off:])
		}
	}
}

// fill copies root's data, or of an object being made those of the lowest rank that takes
// part. dst is written when all is there, unless nobody has it yet.
type fill struct {
	root         int
	fresh        bool // dst is that of an object being made
	dst, scratch []byte
}

func (f *fill) Begin(c *core.Collective) (err error) {
	if f.fresh {
		f.root = c.Ranks()[0]
	}
	c.Data, f.scratch = nil, nil
	switch {
	case c.Job.Rank == f.root:
		c.Data = f.dst
	case f.fresh && !c.Job.Survives():
		f.scratch = f.dst
	default: // the root may die before all is there
		f.scratch, err = c.Job.Scratch(len(f.dst))
	}
	return err
}

func (f *fill) Expect(rank int, total uint64) error {
	want := 0
	if rank == f.root {
		want = len(f.dst)
	}
	return expectBytes(rank, total, want)
}

func (f *fill) Chunk(c *core.Collective, rank, off int, b []byte) bool {
	reduce.Copy(f.scratch[off:], b)
	c.Taken(rank, len(b))
	return true
}

func (f *fill) Finish(c *core.Collective) {
	if slices.Contains(c.Ranks(), f.root) && c.Job.Rank != f.root && (!f.fresh || c.Job.Survives()) {
		reduce.Copy(f.dst, f.scratch)
	}
}
