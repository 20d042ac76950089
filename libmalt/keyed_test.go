package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"malt/graphs"
	"malt/libmalt"
	"malt/rdma"
)

// held is what a rank has of a vector with ids, and wants.
type held struct {
	ids, wants []uint64
	values     []float64 // width of them for each id
}

// deal gives the ranks of a job rows: the ids of some occur on several, twice on one, or nowhere.
func deal(seed uint64, size, width int) []held {
	draw := rand.New(rand.NewPCG(seed, uint64(size)))
	pool := []uint64{0, math.MaxUint64}
	for range 20 {
		pool = append(pool, draw.Uint64())
	}
	for i := range 10 {
		pool = append(pool, uint64(i)) // as programs number rows
	}
	some := func(from []uint64, most int) []uint64 {
		list := []uint64{}
		for range draw.IntN(most + 1) {
			list = append(list, from[draw.IntN(len(from))])
		}
		return list
	}
	all := make([]held, size)
	for r := range all {
		h := &all[r]
		h.ids, h.wants = some(pool[:28], 20), some(pool, 20)
		switch draw.IntN(6) {
		case 0:
			h.ids = []uint64{}
		case 1:
			h.wants = []uint64{}
		case 2:
			h.wants = nil
		}
		for range len(h.ids) * width {
			h.values = append(h.values, draw.NormFloat64())
		}
	}
	return all
}

// stagesOf are those of a graph of vectors with ids.
func stagesOf(spec string, size, rank int) []graphs.Stage {
	type key struct {
		spec       string
		size, rank int
	}
	known, ok := stages.Load(key{spec, size, rank})
	if !ok {
		of := spec
		if spec == "all" && size > 1 {
			of = fmt.Sprintf("butterfly:%d", size)
		}
		g, err := graphs.Parse(of, size)
		if err != nil {
			panic(err)
		}
		known, _ = stages.LoadOrStore(key{spec, size, rank}, g.Stages(rank))
	}
	return known.([]graphs.Stage)
}

var stages sync.Map // what stagesOf has found

// combined is element e of the row of an id, as rank knows it after so many stages, in the order
// of the ranks in each group; n: of how many rows.
func combined(spec, fold string, all []held, width, stage, rank int, id uint64, e int, round func(float64) float64) (x float64, n int) {
	take := func(y float64, rows int) {
		switch {
		case rows == 0:
		case n == 0:
			x = y
		case fold == "min":
			x = min(x, y)
		case fold == "max":
			x = max(x, y)
		default:
			x = round(x + y)
		}
		n += rows
	}
	if stage == 0 {
		for i, own := range all[rank].ids {
			if own == id {
				take(round(all[rank].values[i*width+e]), 1)
			}
		}
		return x, n
	}
	for _, r := range stagesOf(spec, len(all), rank)[stage-1].Group {
		take(combined(spec, fold, all, width, stage-1, r, id, e, round))
	}
	return x, n
}

// keyedCase is one vector with ids on one graph.
type keyedCase struct {
	spec, fold string
	dtype      libmalt.DType
	width      int
}

func (c keyedCase) round(x float64) float64 {
	if c.dtype == libmalt.Float32 {
		return float64(float32(x))
	}
	return x
}

func (c keyedCase) put(b []byte, i int, x float64) {
	if c.dtype == libmalt.Float32 {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(x)))
	} else {
		setElement(b, i, x)
	}
}

func (c keyedCase) get(b []byte, i int) float64 {
	if c.dtype == libmalt.Float32 {
		return float64(at(b, i))
	}
	return element(b, i)
}

// array is the array of a rank, without values.
func (c keyedCase) array(h held) libmalt.Array {
	return libmalt.Array{DType: c.dtype, Count: len(h.ids) * c.width, Row: c.width, IDs: h.ids, Wants: h.wants}
}

func (c keyedCase) fill(v *libmalt.Vector, h held) {
	for i, x := range h.values {
		c.put(v.Array(0), i, x)
	}
}

// check syncs v, and holds what it brings against what the ranks hold.
func (c keyedCase) check(ctx context.Context, v *libmalt.Vector, all []held) error {
	rank := v.World().Rank()
	h := all[rank]
	c.fill(v, h)
	if n, err := v.Sync(ctx, 1); err != nil || n != len(all)-1 {
		return fmt.Errorf("%d updates: %w", n, err)
	}
	wants := h.wants
	got, missing, n, err := v.Wanted()
	if err != nil {
		return err
	}
	if wants == nil {
		wants = h.ids
	} else {
		for i, x := range h.values {
			if c.get(v.Array(0), i) != c.round(x) {
				return fmt.Errorf("the sync has changed the array of rank %d", rank)
			}
		}
	}
	if n != len(wants) || len(missing) != len(h.wants) || len(got) != len(wants)*c.width*c.dtype.Size() {
		return fmt.Errorf("%d bytes and %d marks for %d wanted rows", len(got), len(missing), len(wants))
	}
	for i, id := range wants {
		for e := range c.width {
			want, n := combined(c.spec, c.fold, all, c.width, len(stagesOf(c.spec, len(all), 0)), 0, id, e, c.round)
			if c.fold == "mean" && n > 0 {
				want = c.round(want / float64(n))
			}
			if x := c.get(got, i*c.width+e); math.Float64bits(x) != math.Float64bits(want) {
				return fmt.Errorf("rank %d: %v for element %d of id %d, want %v of %d rows", rank, x, e, id, want, n)
			}
			if h.wants != nil && missing[i] != map[bool]byte{true: 1, false: 0}[n == 0] {
				return fmt.Errorf("rank %d: missing is %d for id %d, which %d rows have", rank, missing[i], id, n)
			}
		}
	}
	return nil
}

// TestG14Rows holds rows against what a walk over all ranks finds: on all, and in the stages of every
// factoring. A vector that is configured is as one that is made so.
func TestG14Rows(t *testing.T) {
	for size := 1; size <= 12; size++ {
		for i, spec := range append(factorings(size), "all", "butterfly") {
			for _, width := range []int{1, 3} {
				c := keyedCase{spec, []string{"sum", "mean", "min", "max"}[(i+width+size)%4], libmalt.Float32, width}
				if (i+size)%3 == 0 {
					c.dtype = libmalt.Float64
				}
				t.Run(fmt.Sprintf("%s of %d, %s of %d", spec, size, c.fold, width), func(t *testing.T) {
					t.Parallel()
					first, second := deal(1, size, width), deal(2, size, width)
					job(t, size, func(ctx context.Context, w *libmalt.World) error {
						v, err := w.NewVector(ctx, []libmalt.Array{c.array(first[w.Rank()])}, "", "graph="+spec+" fold="+c.fold)
						if err != nil {
							return err
						}
						for range 2 {
							if err := c.check(ctx, v, first); err != nil {
								return err
							}
						}
						h := second[w.Rank()]
						old := v.Array(0)
						if err := v.ConfigureRows(ctx, h.ids, h.wants); err != nil {
							return err
						}
						if len(old) > 0 {
							if err := w.Unmap(&old[0]); err != nil {
								return err
							}
						}
						return c.check(ctx, v, second)
					})
				})
			}
		}
	}
}

// part is the number of the part of all ids in which id is, of so many.
func part(id uint64, parts int) int {
	id = (id ^ id>>33) * 0xff51afd7ed558ccd
	id = (id ^ id>>33) * 0xc4ceb9fe1a85ec53
	number, _ := bits.Mul64(id^id>>33, uint64(parts))
	return int(number)
}

// TestRowsBytes: a sync sends nothing but the values of the ids that a rank stands for, once each, down
// the stages, and up those that others want.
func TestRowsBytes(t *testing.T) {
	const width, size = 3, 12
	all := deal(3, size, width)
	for _, spec := range append(factorings(size), "all") {
		c := keyedCase{spec, "sum", libmalt.Float32, width}
		// known are the ids that rank stands for before a stage, within its part of so many; and
		// that number.
		known := func(stage, rank int, of func(held) []uint64) (list []uint64, number, parts int) {
			parts = 1
			stages := stagesOf(spec, size, rank)
			for _, s := range stages[:stage] {
				number = number*len(s.Group) + slices.Index(s.Group, rank)
				parts *= len(s.Group)
			}
			ranks, first := 1, rank
			if stage < len(stages) {
				ranks, first = stages[stage].Ranks, stages[stage].First(rank)
			}
			for r := first; r < first+ranks; r++ {
				for _, id := range of(all[r]) {
					if part(id, parts) == number && !slices.Contains(list, id) {
						list = append(list, id)
					}
				}
			}
			return list, number, parts
		}
		// within counts the ids that a rank knows for the member of its group with that place.
		within := func(stage, rank, member, members int, of func(held) []uint64) (n int) {
			list, number, parts := known(stage, rank, of)
			for _, id := range list {
				if part(id, parts*members) == number*members+member {
					n++
				}
			}
			return n
		}
		ids := func(h held) []uint64 { return h.ids }
		wants := func(h held) []uint64 {
			if h.wants == nil {
				return h.ids
			}
			return h.wants
		}
		t.Run(spec, func(t *testing.T) {
			job(t, size, func(ctx context.Context, w *libmalt.World) error {
				v, err := w.NewVector(ctx, []libmalt.Array{c.array(all[w.Rank()])}, "", "graph="+spec+" fold=sum")
				if err != nil {
					return err
				}
				for range 3 {
					if err := c.check(ctx, v, all); err != nil {
						return err
					}
				}
				stats, err := v.Stats()
				if err != nil {
					return err
				}
				for i, s := range stagesOf(spec, size, w.Rank()) {
					own := slices.Index(s.Group, w.Rank())
					for j, r := range s.Group {
						if j == own {
							continue
						}
						rows := within(i, w.Rank(), j, len(s.Group), ids) + within(i, r, own, len(s.Group), wants)
						if got := stats.Edges[r].SentBytes; got != uint64(3*rows*4*width) {
							return fmt.Errorf("%d bytes to rank %d in 3 syncs, want %d rows of %d bytes in each", got, r, rows, 4*width)
						}
					}
				}
				if stats.Scatters != 3 || stats.Gathers != 3 || v.Clock() != 3 {
					return fmt.Errorf("%d scatters, %d gathers, clock %d: want 3", stats.Scatters, stats.Gathers, v.Clock())
				}
				return nil
			})
		})
	}
}

// TestRowsInMessages: lists and rows that take many messages, which come in any order of the ranks.
func TestRowsInMessages(t *testing.T) {
	const rows, width = 5000, 200 // 4 MB
	for _, ranks := range []struct {
		name string
		make func() []rdma.Transport
	}{
		{"shm", func() []rdma.Transport { return shared(t, 3) }},
		{"tcp", func() []rdma.Transport { return overTCP(t, 3) }},
	} {
		t.Run(ranks.name, func(t *testing.T) {
			for r, err := range run(background(t), ranks.make(), func(ctx context.Context, w *libmalt.World) error {
				var h held
				for i := range rows {
					h.ids = append(h.ids, uint64(i*(w.Rank()+1))) // some alike
				}
				c := keyedCase{"all", "sum", libmalt.Float32, width}
				v, err := w.NewVector(ctx, []libmalt.Array{c.array(h)}, "", "fold=sum")
				if err != nil {
					return err
				}
				for range 2 {
					fill(v.Array(0), float32(1+w.Rank()))
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
					for i, id := range h.ids {
						want := float32(0)
						for r := range 3 {
							if id%uint64(r+1) == 0 && id/uint64(r+1) < rows {
								want += float32(1 + r)
							}
						}
						if x, err := constant(v.Array(0)[4*width*i:][:4*width]); err != nil || x != want {
							return fmt.Errorf("id %d: %v (%w), want %v", id, x, err, want)
						}
					}
				}
				return nil
			}) {
				if err != nil {
					t.Errorf("rank %d: %v", r, err)
				}
			}
		})
	}
}

// TestRowsLate: a sync that times out names the rank that does not come, is given up, and leaves what
// the last one brought; the others hear of it, and the next one succeeds.
func TestRowsLate(t *testing.T) {
	for _, spec := range []string{"all", "butterfly:2x2"} {
		t.Run(spec, func(t *testing.T) {
			const size = 4
			c := keyedCase{spec, "sum", libmalt.Float64, 1}
			all := make([]held, size) // of ids in all parts
			for r := range all {
				for id := range uint64(40) {
					all[r].ids, all[r].values = append(all[r].ids, id), append(all[r].values, float64(r))
				}
				all[r].wants = all[r].ids[:30]
			}
			var tried sync.WaitGroup
			tried.Add(size - 1)
			job(t, size, func(ctx context.Context, w *libmalt.World) error {
				v, err := w.NewVector(ctx, []libmalt.Array{c.array(all[w.Rank()])}, "", "fold=sum graph="+spec)
				if err == nil {
					err = c.check(ctx, v, all)
				}
				if err != nil {
					return err
				}
				if w.Rank() == 3 {
					tried.Wait()
				} else {
					got, _, _, _ := v.Wanted()
					before := slices.Clone(got)
					fill(v.Array(0), 7)
					patience := ctx
					if w.Rank() == 0 {
						short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
						defer stop()
						patience = short
					}
					_, err := v.Sync(patience, 1)
					tried.Done()
					switch {
					case w.Rank() == 0 && (!errors.Is(err, libmalt.ErrTimeout) || !strings.Contains(err.Error(), "rank 3")):
						return fmt.Errorf("without rank 3: %v", err)
					case w.Rank() != 0 && (!errors.Is(err, libmalt.ErrLeft) || !strings.Contains(err.Error(), "rank 0")):
						return fmt.Errorf("rank 0 gave up: %v", err)
					case !bytes.Equal(got, before):
						return errors.New("a sync that was given up has changed the wanted rows")
					}
				}
				if w.Rank() == 3 {
					if _, err := v.Sync(ctx, 1); !errors.Is(err, libmalt.ErrLeft) {
						return fmt.Errorf("all others gave up: %v", err)
					}
				}
				return c.check(ctx, v, all)
			})
		})
	}
}

// TestRowsDeath: the death of a rank ends a sync.
func TestRowsDeath(t *testing.T) {
	all := deal(5, 3, 1)
	c := keyedCase{"all", "mean", libmalt.Float32, 1}
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		v, err := w.NewVector(ctx, []libmalt.Array{c.array(all[w.Rank()])}, "", "")
		if err == nil {
			err = c.check(ctx, v, all)
		}
		if err != nil {
			return err
		}
		if w.Rank() == 2 {
			w.Abort(rdma.HasFailed(2, "of this test"))
			return nil
		}
		for err == nil {
			_, err = v.Sync(ctx, 1)
		}
		if dead := new(rdma.PeerError); !errors.As(err, &dead) || dead.Rank != 2 {
			return fmt.Errorf("after the death of rank 2: %v", err)
		}
		return nil
	})
}

// TestRowsLeave: a rank that has made its last sync may leave at once.
func TestRowsLeave(t *testing.T) {
	for range 50 {
		all := deal(6, 4, 1)
		c := keyedCase{"butterfly:2x2", "sum", libmalt.Float32, 1}
		job(t, 4, func(ctx context.Context, w *libmalt.World) error {
			v, err := w.NewVector(ctx, []libmalt.Array{c.array(all[w.Rank()])}, "", "fold=sum graph="+c.spec)
			if err == nil {
				err = c.check(ctx, v, all)
			}
			return err
		})
	}
}

func TestRowsAreRefused(t *testing.T) {
	one := func(a libmalt.Array) []libmalt.Array { return []libmalt.Array{a} }
	ids := []uint64{1, 2}
	good := libmalt.Array{DType: libmalt.Float32, Count: 2, IDs: ids}
	job(t, 1, func(ctx context.Context, w *libmalt.World) error {
		for _, c := range []struct {
			arrays  []libmalt.Array
			options string
			want    string
		}{
			{one(libmalt.Array{DType: libmalt.Float32, Count: 3, IDs: ids}), "", "2 ids for 3 elements in rows of 1"},
			{one(libmalt.Array{DType: libmalt.Float32, Count: 2, Wants: ids}), "", "wants= without ids="},
			{[]libmalt.Array{good, good}, "", "ids= of a vector of 2 arrays"},
			{one(good), "graph=ring", "graph=ring does not go with ids="},
			{one(good), "consistency=ssp:1", "consistency=ssp:1 does not go with ids="},
			{one(good), "sparse=model", "sparse=model does not go with ids="},
			{one(good), "fold=replace", "fold=replace does not go with ids="},
			{one(good), "fold=sum-changes", "does not go with ids="},
		} {
			_, err := w.NewVector(ctx, c.arrays, "", c.options)
			if err := refused(err, libmalt.ErrInvalid, c.want); err != nil {
				return err
			}
		}
		v, err := w.NewVector(ctx, one(good), "v", "")
		if err != nil {
			return err
		}
		for want, call := range map[string]func() error{
			"v.scatter: a vector with ids has no scatter":   func() error { _, err := v.Scatter(ctx, nil, 1); return err },
			"v.gather: a vector with ids has no gather":     func() error { _, err := v.Gather(ctx, ""); return err },
			"rows= does not go":                             func() error { _, err := v.SyncRows(ctx, []int64{0}, 1); return err },
			"weight=2 does not go with ids=":                func() error { _, err := v.Sync(ctx, 2); return err },
			"slack=1 does not go with ids=":                 func() error { _, err := v.SyncSlack(ctx, 1, 1); return err },
			"v.allreduce: a vector with ids has other rows": func() error { return v.AllReduce(ctx, "sum") },
			"v.broadcast: a vector with ids has other rows": func() error { return v.Broadcast(ctx, 0) },
			"cannot be configured":                          func() error { return v.Configure(ctx, "graph=butterfly") },
			"has no gather\nits ranks meet, and both":       func() error { _, err := v.Begin(ctx); return err },
		} {
			if err := refused(call(), nil, want); err != nil {
				return err
			}
		}
		dense, err := vector(ctx, w, 2, "")
		if err == nil {
			err = refused(dense.ConfigureRows(ctx, ids, nil), libmalt.ErrInvalid, "has no ids")
		}
		if _, _, _, none := dense.Wanted(); err == nil {
			err = refused(none, libmalt.ErrInvalid, "has no wanted rows")
		}
		return err
	})
	survivors(t, 3, 1, func(ctx context.Context, w *libmalt.World) error {
		_, err := w.NewVector(ctx, one(good), "", "")
		if err := refused(err, libmalt.ErrUnsupported, "cannot go on when ranks die"); err != nil {
			return err
		}
		if w.Rank() == 1 {
			return errKilled
		}
		return nil
	})
}

func refused(err, kind error, want string) error {
	if err == nil || kind != nil && !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
		return fmt.Errorf("got %v, want %q", err, want)
	}
	return nil
}
