package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// acrossLength is a float32 vector that is exchanged between any hosts of layouts
// but two of one rank each, to which a share is worth no second hop.
const acrossLength = 64 << 10

// exchanged are the layouts on which that is so.
var exchanged = layouts[1:]

// constants are what all elements are after a sync of 1, 2, … .
type constants struct{ mean float32 }

// sync gives a vector of acrossLength this rank's value and syncs.
func (c *constants) sync(ctx context.Context, v *libmalt.Vector) error {
	fill(v.Bytes(), float32(v.World().Rank()+1))
	_, err := v.Sync(ctx, 1)
	if err == nil {
		err = c.check(v)
	}
	return err
}

func meanOf(n int) *constants { return &constants{float32(n+1) / 2} }

func (c *constants) check(v *libmalt.Vector) error {
	x, err := constant(v.Bytes())
	if err == nil && x != c.mean {
		err = fmt.Errorf("clock %d: mean %v, want %v", v.Clock(), x, c.mean)
	}
	return err
}

// TestAcrossBytes: between hosts pass 2(H-1)/H times the array per host and sync, and
// no box of the vector is used; each rank of a host sends its part. In a job that goes on when
// ranks die it is the same.
func TestAcrossBytes(t *testing.T) {
	const syncs, lines = 5, 210 // every number of hosts and ranks here divides it
	for i, host := range slices.Concat(exchanged, exchanged) {
		goesOn := i >= len(exchanged)
		t.Run(fmt.Sprint(host, goesOn), func(t *testing.T) {
			hosts := map[int]int{}
			for _, h := range host {
				hosts[h]++
			}
			sent := make([]map[int]uint64, len(host)) // by rank, to each host
			body := func(ctx context.Context, w *libmalt.World) error {
				n := 16 * 24 * lines
				v, err := vector(ctx, w, n, "start=own")
				if err != nil {
					return err
				}
				count := func(to int) (bytes uint64) {
					for r, h := range host {
						if h == to && r != w.Rank() {
							bytes += w.Traffic(r).SentBytes
						}
					}
					return bytes
				}
				before, edges := map[int]uint64{}, make([]uint64, w.Size())
				for h := range hosts {
					before[h] = count(h)
				}
				for r := range edges {
					edges[r] = w.Traffic(r).SentBytes
				}
				for range syncs {
					if err := meanOf(w.Size()).sync(ctx, v); err != nil {
						return err
					}
				}
				sent[w.Rank()] = map[int]uint64{}
				for h := range hosts {
					sent[w.Rank()][h] = count(h) - before[h]
				}
				st, err := v.Stats()
				if err == nil && (st.Scatters != syncs || st.Gathers != syncs || v.Clock() != syncs) {
					err = fmt.Errorf("%d scatters, %d gathers at clock %d", st.Scatters, st.Gathers, v.Clock())
				}
				for r, e := range st.Edges {
					if got := w.Traffic(r).SentBytes - edges[r]; host[r] != host[w.Rank()] && e.SentBytes != got {
						err = fmt.Errorf("edge %d: %d bytes, the transport counts %d", r, e.SentBytes, got)
					}
				}
				return errors.Join(err, w.Barrier(ctx))
			}
			if goesOn {
				survivorsOn(t, inmem.NewHosts(host...), 1, func(tr rdma.Transport) rdma.Transport { return tr }, body)
			} else {
				check(t, run(background(t), inmem.NewHosts(host...), body))
			}
			const all = 4 * 16 * 24 * lines
			for h, ranks := range hosts {
				total, inside := uint64(0), uint64(0)
				for r := range host {
					if host[r] != h {
						continue
					}
					inside += sent[r][h]
					own := uint64(0)
					for to, n := range sent[r] {
						if to != h {
							own += n
						}
					}
					total += own
					if ranks > 1 && own == 0 {
						t.Errorf("rank %d has sent nothing to another host", r)
					}
				}
				if want := uint64(syncs * 2 * (len(hosts) - 1) * all / len(hosts)); total != want || inside != 0 {
					t.Errorf("host %d has sent %d bytes, and %d within; want %d and none", h, total, inside, want)
				}
			}
		})
	}
}

// TestAcrossEveryStage: the ranks make single steps in turn; after so many of them the
// first gives up, and gathers or closes, or makes a collective call, and the others go
// on. All end with the mean, in whichever stage each of them was.
func TestAcrossEveryStage(t *testing.T) {
	for _, host := range [][]int{{0, 1, 2}, {0, 0, 1}, {0, 1, 1, 1}} {
		for victim := range host {
			for steps := 1; steps < 4*len(host); steps++ {
				if testing.Short() && steps%4 != 1 {
					continue
				}
				for _, way := range []string{"gather", "close", "barrier"} {
					t.Run(fmt.Sprintf("%v/%d/%d/%s", host, victim, steps, way), func(t *testing.T) {
						everyStage(t, host, victim, steps, way)
					})
				}
			}
		}
	}
}

func everyStage(t *testing.T, host []int, victim, steps int, way string) {
	type order func(ctx context.Context, v *libmalt.Vector) error
	n, mean := len(host), meanOf(len(host))
	orders, results := make([]chan order, n), make(chan error)
	for r := range orders {
		orders[r] = make(chan order)
	}
	over := make(chan []error)
	go func() {
		over <- run(background(t), inmem.NewHosts(host...), func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, acrossLength, "start=own")
			if err != nil {
				return err
			}
			fill(v.Bytes(), float32(w.Rank()+1))
			for do := range orders[w.Rank()] {
				results <- do(ctx, v)
			}
			return nil
		})
	}()
	done, syncs := make([]bool, n), make([]*routetest.Held, n)
	step := func(_ context.Context, v *libmalt.Vector) error {
		r := v.World().Rank()
		if syncs[r] == nil {
			syncs[r] = routetest.Hold(func(ctx context.Context) error { _, err := v.Sync(ctx, 1); return err })
		}
		waits, err := syncs[r].Step()
		if waits != nil {
			return nil
		}
		done[r] = true
		return errors.Join(err, mean.check(v))
	}
	for i := range steps {
		if r := (victim + i) % n; !done[r] {
			orders[r] <- step
			if err := <-results; err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	}
	if !done[victim] {
		orders[victim] <- func(_ context.Context, v *libmalt.Vector) error {
			err := wantErr(syncs[victim].GiveUp(), libmalt.ErrTimeout)
			if way == "close" {
				done[victim] = true
				err = errors.Join(err, v.Close())
			}
			return err
		}
		if err := <-results; err != nil {
			t.Errorf("rank %d: %v", victim, err)
		}
	}
	left := 0
	for r := range n {
		if done[r] {
			continue
		}
		left++
		orders[r] <- func(ctx context.Context, v *libmalt.Vector) error {
			var err error
			switch {
			case r == victim:
				if way == "barrier" {
					err = v.World().Barrier(ctx)
				}
				if err == nil {
					_, err = v.Gather(ctx, "")
				}
			case syncs[r] != nil:
				err = syncs[r].Finish(ctx)
			default:
				_, err = v.Sync(ctx, 1)
			}
			return errors.Join(err, mean.check(v))
		}
	}
	for r := range n {
		if way == "barrier" && !done[victim] && r != victim {
			go func() {
				orders[r] <- func(ctx context.Context, v *libmalt.Vector) error { return v.World().Barrier(ctx) }
			}()
			left++
		}
	}
	for range left {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	for r := range orders {
		close(orders[r])
	}
	check(t, <-over)
}

// mortal is a transport whose rank dies before its next send, after so many.
type mortal struct {
	rdma.Transport
	left int
}

var errDead = errors.New("this rank is dead")

func (m *mortal) Publish(ctx context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
	out, err := m.Transport.Publish(ctx, name, s, readers)
	if name == "world" {
		return out, err
	}
	return &mortalOut{out, m}, err
}

type mortalOut struct {
	rdma.Outbox
	m *mortal
}

func (o *mortalOut) Begin() ([]byte, error) {
	if o.m.left == 0 {
		o.m.Abort(rdma.HasFailed(o.m.Rank(), "killed"))
		return nil, errDead
	}
	return o.Outbox.Begin()
}

func (o *mortalOut) Commit(n int, s rdma.Stamp, to []int) error {
	o.m.left--
	return o.Outbox.Commit(n, s, to)
}

// TestAcrossDeath: a rank that dies before any of its sends fails all who wait, at
// once, and leaves their arrays as they were or, where they had got there, averaged.
func TestAcrossDeath(t *testing.T) {
	for _, host := range [][]int{{0, 1, 2}, {0, 0, 1}, {0, 1, 1, 1}} {
		for victim := range host {
			for sends := range 7 {
				t.Run(fmt.Sprintf("%v/%d/%d", host, victim, sends), func(t *testing.T) {
					ts := inmem.NewHosts(host...)
					ts[victim] = &mortal{ts[victim], sends}
					mean := meanOf(len(host))
					for r, err := range run(background(t), ts, func(ctx context.Context, w *libmalt.World) error {
						v, err := vector(ctx, w, acrossLength, "start=own")
						if err != nil {
							return err
						}
						for range 5 {
							if err = mean.sync(ctx, v); err != nil {
								break
							}
						}
						if x, torn := constant(v.Bytes()); torn != nil || x != mean.mean && x != float32(w.Rank()+1) {
							return fmt.Errorf("array of %v (%v) after: %v", x, torn, err)
						}
						return err
					}) {
						var dead *rdma.PeerError
						switch {
						case r == victim && !errors.Is(err, errDead):
							t.Errorf("the victim: %v", err)
						case r != victim && (!errors.As(err, &dead) || dead.Rank != victim):
							t.Errorf("rank %d: %v, expected the death of rank %d", r, err, victim)
						}
					}
				})
			}
		}
	}
}

// TestAcrossIsARoute: on all layouts, and for ranks that are near nobody, over connections.
func TestAcrossIsARoute(t *testing.T) {
	rounds := 24
	if testing.Short() {
		rounds = 8
	}
	for _, host := range exchanged {
		t.Run(fmt.Sprint(host), func(t *testing.T) {
			routetest.Route{Ranks: func(*testing.T) []rdma.Transport { return inmem.NewHosts(host...) }, Elements: acrossLength, Rounds: rounds}.Run(t)
		})
	}
	for _, n := range []int{3, 4} {
		t.Run(fmt.Sprintf("tcp, n=%d", n), func(t *testing.T) {
			routetest.Route{Ranks: func(t *testing.T) []rdma.Transport { return overTCP(t, n) }, Elements: acrossLength, Rounds: 12}.Run(t)
		})
	}
}

// TestAcrossScatterToSome: a rank that scatters by itself where the others sync has
// them go through boxes, also those that it does not scatter to.
func TestAcrossScatterToSome(t *testing.T) {
	for _, to := range [][]int{{}, {0}, {2}} {
		t.Run(fmt.Sprint(to), func(t *testing.T) {
			for r, err := range run(background(t), overTCP(t, 3), func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, acrossLength, "start=own")
				if err != nil {
					return err
				}
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
				fill(v.Bytes(), float32(w.Rank()))
				if w.Rank() != 1 {
					want := 1
					if slices.Contains(to, w.Rank()) {
						want++
					}
					n, err := v.Sync(ctx, 1)
					if n != want && err == nil {
						err = fmt.Errorf("%d updates folded, expected %d", n, want)
					}
					return err
				}
				if _, err := v.Scatter(ctx, to, 1); err != nil {
					return err
				}
				n, err := v.Gather(ctx, "")
				if n != 2 && err == nil {
					err = fmt.Errorf("%d updates folded, expected 2", n)
				}
				return err
			}) {
				if err != nil {
					t.Errorf("rank %d: %v", r, err)
				}
			}
		})
	}
}
