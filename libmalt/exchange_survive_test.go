package libmalt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// killable is a rank that dies where it would send a certain message, the first being 1: that one
// is not sent, nor is any after it.
type killable struct {
	rdma.Viewed
	dies, sent int
}

func (m *killable) Publish(ctx context.Context, name string, spec rdma.Spec, readers []int) (rdma.Outbox, error) {
	out, err := m.Viewed.Publish(ctx, name, spec, readers)
	if err != nil {
		return nil, err
	}
	return &killableOutbox{out.(rdma.ViewedOutbox), m}, nil
}

type killableOutbox struct {
	rdma.ViewedOutbox
	m *killable
}

func (o *killableOutbox) Commit(n int, s rdma.Stamp, to []int) error {
	if o.m.sent++; o.m.dies > 0 && o.m.sent >= o.m.dies {
		return errKilled
	}
	return o.ViewedOutbox.Commit(n, s, to)
}

// TestG8ExchangersAgree kills one rank at each message that it sends in syncs of a vector that
// hosts exchange. The others have the same array after each sync, and make all of them.
func TestG8ExchangersAgree(t *testing.T) {
	const steps = 4
	for _, c := range []struct {
		host []int
		wire string
	}{{[]int{0, 1, 2}, "exact"}, {[]int{0, 0, 1}, "exact"}, {[]int{0, 1, 0, 1, 2}, "exact"}, {[]int{0, 0, 1}, "int8"}, {[]int{0, 1, 2}, "bf16"}} {
		if testing.Short() && c.wire != "exact" {
			continue
		}
		host := c.host
		for killed := range host {
			for at, met := 1, true; met && !t.Failed(); at++ {
				var mu sync.Mutex
				met = false
				first, ranks := map[int][]byte{}, make([]killable, len(host))
				survivorsOn(t, inmem.NewHosts(host...), 1, func(tr rdma.Transport) rdma.Transport {
					ranks[tr.Rank()].Viewed = tr.(rdma.Viewed)
					return &ranks[tr.Rank()]
				}, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, acrossLength, "wire="+c.wire)
					if err != nil {
						return err
					}
					if w.Rank() == killed {
						ranks[killed].dies, ranks[killed].sent = at, 0
					}
					for step := range steps {
						fill(v.Bytes(), float32(step*100)+float32(w.Rank()))
						_, err := v.Sync(ctx, 1)
						mu.Lock()
						switch {
						case errors.Is(err, errKilled):
							met, err = true, errKilled
						case err == nil && w.Rank() != killed:
							if first[step] == nil {
								first[step] = slices.Clone(v.Bytes())
							}
							if _, err = constant(v.Bytes()); err == nil && !bytes.Equal(first[step], v.Bytes()) {
								err = errors.New("another array than another rank has")
							}
						}
						mu.Unlock()
						if err == errKilled {
							return err
						}
						if err != nil {
							return fmt.Errorf("hosts %v, rank %d dies at message %d: step %d: %w", host, killed, at, step, err)
						}
					}
					return nil
				})
			}
		}
	}
}

// tardy is a rank that connects the exchange of a vector only when another one has died.
type tardy struct {
	killable
	once sync.Once
	dead <-chan struct{}
	die  func() // of the rank that dies; else nil
}

func (l *tardy) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) (ins []rdma.Inbox, err error) {
	if strings.Contains(name, "/part/") {
		l.once.Do(func() {
			if l.die != nil {
				l.dies = 1
				l.die()
				err = errKilled
				return
			}
			<-l.dead
			err = rdma.HasFailed(2, "killed")
		})
	}
	if err != nil {
		return nil, err
	}
	return l.killable.Subscribe(ctx, name, s, senders)
}

// TestDeathWhileTheExchangeConnects: a vector whose boxes are connected, and whose exchange is
// not when a rank dies, is made among the others, and goes through boxes.
func TestDeathWhileTheExchangeConnects(t *testing.T) {
	dead := make(chan struct{})
	ranks := make([]tardy, 3)
	survivorsOn(t, inmem.NewHosts(0, 1, 2), 1, func(tr rdma.Transport) rdma.Transport {
		l := &ranks[tr.Rank()]
		l.Viewed, l.dead = tr.(rdma.Viewed), dead
		if tr.Rank() == 2 {
			l.die = func() { inmem.Kill(tr); close(dead) }
		}
		return l
	}, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, acrossLength, "start=own")
		if w.Rank() == 2 {
			return errKilled
		}
		if err != nil {
			return err
		}
		return mean(ctx, v, float32(w.Rank()), 0.5)
	})
}

// renewed is a rank of a job that goes over to another view, of the same ranks, when rank 0 has made
// the words of an exchange and not all of its boxes: so it is when a host without ranks is gone.
type renewed struct {
	rdma.Viewed
	views *atomic.Uint64
	goOn  func()
}

func (l *renewed) View() rdma.View {
	v := l.Viewed.View()
	v.Generation += l.views.Load()
	return v
}

func (l *renewed) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) ([]rdma.Inbox, error) {
	if l.Rank() == 0 && strings.Contains(name, "/sum/") && l.views.CompareAndSwap(0, 1) {
		l.goOn()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.Viewed.Subscribe(ctx, name, s, senders)
}

// TestViewWhileTheExchangeConnects: rank 0 connects again, and others, which have, do not.
func TestViewWhileTheExchangeConnects(t *testing.T) {
	ts := inmem.NewHosts(0, 1, 1)
	var views atomic.Uint64
	survivorsOn(t, ts, 1, func(tr rdma.Transport) rdma.Transport {
		return &renewed{tr.(rdma.Viewed), &views, func() {
			for _, other := range ts {
				other.Wake()
			}
		}}
	}, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, acrossLength, "start=own")
		if err != nil {
			return err
		}
		if views.Load() != 1 {
			return errors.New("there was no other view")
		}
		return mean(ctx, v, float32(w.Rank()), 1)
	})
}

// mean syncs a vector, of which this rank has a value, and expects another one.
func mean(ctx context.Context, v *libmalt.Vector, own, want float32) error {
	fill(v.Bytes(), own)
	if _, err := v.Sync(ctx, 1); err != nil {
		return err
	}
	if x, err := constant(v.Bytes()); err != nil || x != want {
		return fmt.Errorf("the mean is %v (%v), expected %v", x, err, want)
	}
	return nil
}

// eager is a rank of three: where words are made that only an exchange needs, ranks 0 and 2 wait
// for rank 1, which comes there when rank 2 has died, and does without.
type eager struct {
	rdma.Viewed
	waits [3]chan struct{} // closed by a rank that waits for words
	die   func()           // of rank 2, once
	made  context.Context  // ends when the others have made the vector
}

func (l *eager) Words(ctx context.Context, name string, n int) (rdma.Words, error) {
	if !strings.HasSuffix(name, "/done") {
		return l.Viewed.Words(ctx, name, n)
	}
	if l.Rank() == 2 { // what it has left stays
		_, _ = l.Viewed.Words(&observed{Context: l.made, waits: l.waits[2]}, name, n)
		return nil, errKilled
	}
	return l.Viewed.Words(&observed{Context: ctx, waits: l.waits[l.Rank()]}, name, n)
}

func (l *eager) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) ([]rdma.Inbox, error) {
	if l.Rank() == 1 && strings.HasPrefix(name, "v/") {
		<-l.waits[0]
		<-l.waits[2]
		l.die()
	}
	return l.Viewed.Subscribe(ctx, name, s, senders)
}

// observed is a context of a call that says when it begins to wait.
type observed struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

func (c *observed) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waits) })
	return c.Context.Done()
}

// TestDeathSeenBeforeTheExchangeConnects: a rank that hears of a death before it connects the
// exchange does without, and another that has begun to connect does not wait for it.
func TestDeathSeenBeforeTheExchangeConnects(t *testing.T) {
	ts := inmem.NewHosts(0, 0, 1)
	waits := [3]chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	made, end := context.WithCancel(t.Context())
	var making sync.WaitGroup
	making.Add(2)
	go func() { making.Wait(); end() }()
	survivorsOn(t, ts, 1, func(tr rdma.Transport) rdma.Transport {
		return &eager{tr.(rdma.Viewed), waits, sync.OnceFunc(func() { inmem.Kill(ts[2]) }), made}
	}, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, acrossLength, "start=own")
		if w.Rank() == 2 {
			return errKilled
		}
		if making.Done(); err != nil {
			return err
		}
		return mean(ctx, v, float32(w.Rank()), 0.5)
	})
}

// TestFoldWithoutAHost: where the first of three hosts is gone, the mean is that of the others, of
// which the ranks of one weigh the same, and those of another do not.
func TestFoldWithoutAHost(t *testing.T) {
	values, weights := []float32{0, 1, 4, 5, 7}, []float64{1, 1, 2, 3, 3}
	survivorsOn(t, inmem.NewHosts(0, 1, 1, 2, 2), 1, func(tr rdma.Transport) rdma.Transport { return tr }, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, acrossLength, "")
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			return errKilled
		}
		for range 2 {
			fill(v.Bytes(), values[w.Rank()])
			if _, err := v.Sync(ctx, weights[w.Rank()]); err != nil {
				return err
			}
			if got, err := constant(v.Bytes()); got != 5 || err != nil {
				return fmt.Errorf("the mean is %v, %v, not 5", got, err)
			}
		}
		return nil
	})
}
