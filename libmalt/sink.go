package libmalt

import (
	"malt/internal/say"
	"malt/libmalt/reduce"
	"malt/rdma"
	"malt/rdma/auto"
)

// sink is what a collective does with the data of the other ranks.
type sink interface {
	// begin is called once, before anything is sent; an error gives the call up.
	begin(c *collective) error
	// expect tells how many bytes will come from rank.
	expect(rank int, total uint64) error
	// chunk takes the bytes at off of rank's data. false: not before the other
	// ranks' chunks are there, too.
	chunk(c *collective, rank, off int, b []byte) bool
	// finish is called once when everything has come.
	finish(c *collective)
}

// nothing is for calls without data.
type nothing struct{}

func (nothing) begin(*collective) error                  { return nil }
func (nothing) expect(rank int, total uint64) error      { return expectBytes(rank, total, 0) }
func (nothing) chunk(*collective, int, int, []byte) bool { return false }
func (nothing) finish(*collective)                       {}

// keep collects every rank's bytes.
type keep struct{ parts [][]byte }

func (k *keep) begin(c *collective) error {
	k.parts = make([][]byte, c.w.size)
	return nil
}

// expect makes room in the heap, where the kernel would kill for what is not
// there.
func (k *keep) expect(rank int, total uint64) error {
	if total > chunkBytes {
		if free, limit := auto.FreeMemory(); total > free {
			return say.Errorf(ErrNoMemory, "rank %d sends %d bytes, and %d are free within %s", rank, total, free, limit).More("out-of-memory")
		}
	}
	k.parts[rank] = make([]byte, 0, total)
	return nil
}

func (k *keep) chunk(c *collective, rank, _ int, b []byte) bool {
	k.parts[rank] = append(k.parts[rank], b...)
	c.taken(rank, len(b))
	return true
}

func (k *keep) finish(c *collective) { k.parts[c.w.rank] = append([]byte{}, c.data...) }

// combine folds the ranks' data chunk by chunk, in the order of ranks, so that
// all ranks compute the same bits. dst is written when all is there: at an
// error it is as it was.
type combine struct {
	op      reduce.Op
	runs    []run
	dst     []byte
	scratch []byte   // the result so far
	chunks  [][]byte // by rank, those that wait for the others
}

func (m *combine) begin(c *collective) (err error) {
	m.chunks = make([][]byte, c.w.size)
	if c.w.size > 1 {
		m.scratch, err = c.w.scratchOf(len(m.dst))
	}
	return err
}

func (m *combine) expect(rank int, total uint64) error {
	return expectBytes(rank, total, len(m.dst))
}

func expectBytes(rank int, total uint64, want int) error {
	if total != uint64(want) {
		return say.Errorf(rdma.ErrCorrupt, "rank %d sends %d bytes, expected %d", rank, total, want)
	}
	return nil
}

func (m *combine) chunk(c *collective, rank, off int, b []byte) bool {
	m.chunks[rank] = b
	for r := range m.chunks {
		if r != c.w.rank && (m.chunks[r] == nil || c.from[r].got != off) {
			return false
		}
	}
	m.chunks[c.w.rank] = c.data[off : off+len(b)]
	foldRuns(m.op, m.runs, off, m.scratch[off:off+len(b)], m.chunks, nil, 0)
	for r := range m.chunks {
		m.chunks[r] = nil
		if r != c.w.rank {
			c.taken(r, len(b))
		}
	}
	return true
}

func (m *combine) finish(*collective) {
	if m.scratch != nil {
		for _, r := range m.runs { // what lies between them was not folded
			reduce.Copy(m.dst[r.off:r.off+r.bytes], m.scratch[r.off:])
		}
	}
}

// fill copies root's data. dst is written when all is there, unless nobody has it
// yet.
type fill struct {
	root         int
	fresh        bool // dst is that of an object being made
	dst, scratch []byte
}

func (f *fill) begin(c *collective) (err error) {
	switch {
	case f.fresh:
		f.scratch = f.dst
	case c.w.rank != f.root:
		f.scratch, err = c.w.scratchOf(len(f.dst))
	}
	return err
}

func (f *fill) expect(rank int, total uint64) error {
	want := 0
	if rank == f.root {
		want = len(f.dst)
	}
	return expectBytes(rank, total, want)
}

func (f *fill) chunk(c *collective, rank, off int, b []byte) bool {
	reduce.Copy(f.scratch[off:], b)
	c.taken(rank, len(b))
	return true
}

func (f *fill) finish(*collective) {
	if !f.fresh {
		reduce.Copy(f.dst, f.scratch)
	}
}
