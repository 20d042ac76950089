package libmalt_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"malt/libmalt"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// totals is an engine that only this test knows: each rank tells all others the sum of all
// its changes, and the array is the sum of these. A gather takes what comes, and so does the
// goroutine beside it if there is a poll.
type totals struct {
	o      core.Object
	t      rdma.Transport // of its boxes
	remove func() error   // takes the poll away; nil: there is none
	slack  uint64
	spec   rdma.Spec
	out    rdma.Outbox

	mu   sync.Mutex
	in   []rdma.Inbox
	held [][]byte // by place in in: the last total
	late []int

	total, shadow []byte // what this rank has changed; the array as it was after the last call
	clock         uint64
}

func init() {
	libmalt.AddEngine(
		func(v *libmalt.Vector) bool { return strings.HasPrefix(v.Name, "totals") && v.World().Size() > 1 },
		func(o core.Object, slack uint64, bytes int) (core.Engine, error) {
			t := &totals{o: o, t: o.Transport(), slack: slack, spec: rdma.Spec{Bytes: bytes}, total: make([]byte, bytes), shadow: make([]byte, bytes)}
			var err error
			if strings.Contains(o.BoxName(), "polled") {
				if t.t, t.remove, err = o.Progress().Add(t.poll); err != nil {
					return nil, err
				}
			}
			t.out, err = t.t.Publish(context.Background(), t.box(), t.spec, t.others())
			return t, err
		})
}

func (t *totals) box() string { return t.o.BoxName() + "/totals" }

func (t *totals) others() (list []int) {
	for r := range t.o.Size() {
		if r != t.o.Rank() {
			list = append(list, r)
		}
	}
	return list
}

func (t *totals) Memory() []byte { return nil }

func (t *totals) Join(ctx context.Context) (err error) {
	in, err := t.t.Subscribe(ctx, t.box(), t.spec, t.others())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in, t.held = in, make([][]byte, len(in))
	return err
}

// poll is called by the goroutine.
func (t *totals) poll() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.take() == nil {
		t.o.Transport().Wake()
	}
	return false
}

// take takes what has come.
func (t *totals) take() error {
	for i, in := range t.in {
		u, ok, err := in.Next()
		if err != nil {
			return err
		}
		if ok {
			t.held[i] = u.Data
		}
	}
	return nil
}

func (t *totals) Close() error {
	if t.remove != nil {
		defer t.remove()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, in := range t.in {
		_ = in.Close()
	}
	return t.out.Close()
}

func (t *totals) Late() []int                                 { return t.late }
func (t *totals) Through(list, late []int) []int              { return append(list, late...) }
func (t *totals) Level(clock uint64)                          { _ = t.out.Advance(clock) }
func (t *totals) Settled([]int)                               { copy(t.shadow, t.o.Array()) }
func (t *totals) Share(float64) ([]byte, uint64)              { return t.o.Array(), 0 }
func (t *totals) Gathered() (ranks int, age uint64)           { return 1, 0 }
func (t *totals) Count([]core.Edge)                           {}
func (*totals) Inherit([]int) error                           { return nil }
func (t *totals) Writers(late []int) []int                    { return late }
func (t *totals) Moved(int) int                               { return t.spec.Bytes }
func (t *totals) AllReduce(core.Call, reduce.Op) core.Stepper { return nil }

func (t *totals) Scatter(clock uint64, weight float64) core.Stepper {
	return totalsCall{t, "scatter", func() (bool, error) {
		b, err := t.out.Begin()
		if err != nil {
			return false, err
		}
		for i := range t.spec.Bytes / 8 {
			setElement(t.total, i, element(t.total, i)+weight*(element(t.o.Array(), i)-element(t.shadow, i)))
		}
		t.Settled(nil)
		copy(b, t.total)
		t.clock = clock
		return true, t.out.Commit(t.spec.Bytes, rdma.Stamp{Clock: clock}, nil)
	}}
}

func (t *totals) Gather(uint64, uint64) core.Stepper { return totalsCall{t, "gather", t.gather} }

func (t *totals) gather() (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late = t.late[:0]
	for _, in := range t.in {
		if clock, gone := in.Clock(); clock+t.slack < t.clock {
			if wait, dead := t.o.Missing(in.From(), gone); dead != nil {
				return false, dead
			} else if wait {
				t.late = append(t.late, in.From())
			}
		}
	}
	if len(t.late) > 0 {
		return false, nil
	}
	if err := t.take(); err != nil { // what a rank sent before it went counts
		return false, err
	}
	for i := range t.spec.Bytes / 8 {
		sum := element(t.total, i) + element(t.o.Array(), i) - element(t.shadow, i)
		for _, h := range t.held {
			if h != nil {
				sum += element(h, i)
			}
		}
		setElement(t.o.Array(), i, sum)
	}
	t.Settled(nil)
	return true, nil
}

// totalsCall is a scatter or a gather.
type totalsCall struct {
	t    *totals
	name string
	step func() (bool, error)
}

func (c totalsCall) Step() (bool, error) { return c.step() }
func (c totalsCall) Name() string        { return c.t.o.Called(c.name) }
func (c totalsCall) Late() []int         { return nil }
func (c totalsCall) Waiting() core.Wait  { return core.Wait{} }
func (c totalsCall) GiveUp()             {}

func element(b []byte, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
}

func setElement(b []byte, i int, x float64) {
	binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
}

// TestEngine: each rank adds 1 to its own element before each sync. After sync number c its
// own changes are all there, and of each other rank at least c less the slack.
func TestEngine(t *testing.T) {
	for _, c := range []struct {
		slack int
		name  string
	}{{0, "totals"}, {2, "totals"}, {0, "totals-polled"}, {2, "totals-polled"}} {
		slack := c.slack
		t.Run(fmt.Sprintf("%s, ssp:%d", c.name, slack), func(t *testing.T) {
			routetest.Engine{
				Ranks: func(_ *testing.T, n int) []rdma.Transport { return inmem.New(n) },
				Make: func(ctx context.Context, w *libmalt.World) (*libmalt.Vector, error) {
					return w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float64, Count: w.Size()}}, c.name, fmt.Sprintf("consistency=ssp:%d", slack))
				},
				Change: func(v *libmalt.Vector, _ int) {
					r := v.World().Rank()
					setElement(v.Array(0), r, element(v.Array(0), r)+1)
				},
				Check: func(v *libmalt.Vector, clock int, last bool) error {
					for r := range v.World().Size() {
						x, least := int(element(v.Array(0), r)), clock-slack
						if r == v.World().Rank() || last {
							least = clock
						}
						if x < least || (r == v.World().Rank() || last) && x != clock {
							return fmt.Errorf("after sync %d (last: %t) there are %d changes of rank %d", clock, last, x, r)
						}
					}
					return nil
				},
			}.Run(t)
		})
	}
}
