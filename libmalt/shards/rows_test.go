package shards

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"malt/graphs"
	"malt/libmalt/engine"
	"malt/libmalt/filter"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// keeper is an engine of rank 0, which keeps all of ten numbers, with two readers; or of one of these.
type keeper struct {
	core.Object
	rank int
	rdma.Outbox
	e     *Engine
	clock uint64
	acked [3]uint64 // by rank
	away  bool
	lost  int // a rank, if that is not 0
}

func (k *keeper) Rank() int          { return k.rank }
func (*keeper) Array() []byte        { return make([]byte, 40) }
func (*keeper) Size() int            { return 3 }
func (*keeper) Runs() []reduce.Run   { return []reduce.Run{{Type: reduce.Float32, Bytes: 40}} }
func (k *keeper) Lost(r int) bool    { return r > 0 && r == k.lost }
func (*keeper) Survives() bool       { return true }
func (k *keeper) Clock() uint64      { return k.clock }
func (k *keeper) Acked(r int) uint64 { return k.acked[r] }
func (*keeper) Reserve(int) error    { return nil }

func (k *keeper) Until(r int) (call uint64, left bool, death error) {
	if !k.away && !k.Lost(r) {
		call = engine.Here
	}
	return call, false, nil
}

func newKeeper(t *testing.T, rank int, held string) *keeper {
	t.Helper()
	g, err := graphs.Parse("shards:1", 3)
	if err != nil {
		t.Fatal(err)
	}
	var f filter.Filter
	if held != "" {
		if f, err = filter.Parse(held); err != nil {
			t.Fatal(err)
		}
	}
	k := &keeper{rank: rank}
	k.e = newEngine(k, g, 40, spvec.Shape{Rows: 10, Width: 1, Elem: 4}, f)
	k.e.lay(make([]byte, k.e.memory()), reduce.SumChanges)
	k.e.shards[0].sum = k
	return k
}

// publishes changes elements of the sum, and wants a message of these values, with what a reader has
// taken.
func (k *keeper) publishes(t *testing.T, change, want values) {
	t.Helper()
	k.clock++
	if err := k.e.core.add(1, reach{Clock: k.clock, Scatters: k.clock}); err != nil {
		t.Fatal(err)
	}
	for i, x := range change {
		binary.NativeEndian.PutUint32(k.e.sum[4*i:], math.Float32bits(x))
	}
	k.e.Ranks.Look(k)
	slot := make([]byte, 40+k.e.reachesBytes())
	n, kind, err := k.e.sumRows(0, slot)
	if err != nil {
		t.Fatal(err)
	}
	var u spvec.Update
	if err := u.Decode(kind, slot[:n], k.e.shards[0].rows.shape, 1, 0); err != nil {
		t.Fatal(err)
	}
	if u.All {
		u.Index = []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	}
	got, values := values{}, u.Values(new([]byte), k.e.shards[0].rows.shape)
	for i, row := range u.Index {
		got[int(row)] = math.Float32frombits(binary.NativeEndian.Uint32(values[4*i:]))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("clock %d: published %v, want %v", k.clock, got, want)
	}
}

type values = map[int]float32

// TestSumHasWhatAReaderLacks: a row comes again until it has been taken, in the value in which it was sent.
func TestSumHasWhatAReaderLacks(t *testing.T) {
	k := newKeeper(t, 0, "dvf:4")
	k.publishes(t, values{1: 4, 2: 5}, values{2: 5})
	k.publishes(t, values{1: 3, 2: 6, 3: 9}, values{1: 3, 2: 5, 3: 9}) // the limit is 2.8
	k.acked = [3]uint64{1: 1, 2: 2}
	k.publishes(t, values{}, values{1: 3, 3: 9})
	k.acked = [3]uint64{1: 3, 2: 3}
	k.publishes(t, values{2: 7}, values{})
	k.publishes(t, values{2: 8}, values{2: 8})
}

// TestSumWhileAReaderIsLate has the other distance, while a reader that is not in a collective call has not
// taken the last one.
func TestSumWhileAReaderIsLate(t *testing.T) {
	k := newKeeper(t, 0, "dvf:0:100")
	k.publishes(t, values{1: 1}, values{1: 1})
	k.publishes(t, values{2: 1}, values{1: 1})
	k.acked = [3]uint64{1: 2, 2: 2}
	k.publishes(t, values{3: 1}, values{2: 1, 3: 1})
	k.publishes(t, values{4: 1}, values{2: 1, 3: 1})
	k.away = true
	k.publishes(t, values{}, values{2: 1, 3: 1, 4: 1})
}

// TestSumWithoutADeadReader: what only a rank that is dead has not taken is not sent again.
func TestSumWithoutADeadReader(t *testing.T) {
	k := newKeeper(t, 0, "")
	k.publishes(t, values{1: 1}, values{1: 1})
	k.acked = [3]uint64{1: 1}
	k.lost = 2
	k.publishes(t, values{2: 2}, values{2: 2})
}

// TestInherits: what a worker that is not in a call has pushed counts there as the keeper's, once.
func TestInherits(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		g, err := graphs.Parse("shards:1", 3)
		if err != nil {
			t.Fatal(err)
		}
		k := &keeper{clock: 1}
		var shape spvec.Shape
		if sparse {
			shape = spvec.Shape{Rows: 10, Width: 1, Elem: 4}
		}
		k.e = newEngine(k, g, 40, shape, filter.Filter{})
		k.e.lay(make([]byte, k.e.memory()), reduce.SumChanges)
		k.e.In[0] = []engine.Inbox{{Inbox: &pushed{from: 1}}, {Inbox: &pushed{from: 2}}}
		for range 2 {
			if err := k.e.Inherit([]int{0, 1}); err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				sum, share := floatAt(k.e.sum, i), floatAt(k.e.Totals.Sum, i)
				if sum != 3 || share != 2 {
					t.Errorf("sparse %v: the sum is %v and the keeper's share %v, want 3 and 2", sparse, sum, share)
				}
			}
		}
		if err := k.e.Inherit([]int{0}); err != nil || floatAt(k.e.Totals.Sum, 9) != 3 {
			t.Errorf("alone the keeper's share is %v (%v), want 3", floatAt(k.e.Totals.Sum, 9), err)
		}
	}
}

func floatAt(b []byte, i int) float32 {
	return math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
}

// pushed is a box with one push: as many times its rank.
type pushed struct {
	rdma.Inbox
	from  int
	taken bool
}

func (p *pushed) From() int              { return p.from }
func (p *pushed) Clock() (uint64, error) { return 1, nil }
func (*pushed) Release(uint64)           {}

func (p *pushed) Next() (u rdma.Update, ok bool, err error) {
	if p.taken {
		return u, false, nil
	}
	p.taken = true
	for range 10 {
		u.Data = binary.NativeEndian.AppendUint32(u.Data, math.Float32bits(float32(p.from)))
	}
	u.Stamp = rdma.Stamp{Clock: 1, Age: 1, Kind: uint16(spvec.Dense)}
	return u, true, nil
}

// TestSumIsDenseWhereThatIsShorter: of ten numbers in 40 bytes, the message of three rows takes 8 + 12 + 4 + 12.
func TestSumIsDenseWhereThatIsShorter(t *testing.T) {
	k := newKeeper(t, 0, "")
	k.publishes(t, values{1: 1, 2: 2, 3: 3}, values{1: 1, 2: 2, 3: 3})
	k.publishes(t, values{4: 4, 5: 5}, values{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 0, 7: 0, 8: 0, 9: 0})
}

// TestRowsOnTheirWayEndWithAnEra: nothing is on its way in a new one.
func TestRowsOnTheirWayEndWithAnEra(t *testing.T) {
	k := newKeeper(t, 1, "")
	way := k.e.rows.sent
	way[3] = 1
	if k.e.renewRows(); !bytes.Equal(way, make([]byte, 40)) {
		t.Errorf("on their way are %v", way)
	}
}
