package libmalt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/inmem"
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
	for _, host := range [][]int{{0, 1, 2}, {0, 0, 1}, {0, 1, 0, 1, 2}} {
		for killed := range host {
			for at, met := 1, true; met && !t.Failed(); at++ {
				var mu sync.Mutex
				met = false
				first, ranks := map[int][]byte{}, make([]killable, len(host))
				survivorsOn(t, inmem.NewHosts(host...), 1, func(tr rdma.Transport) rdma.Transport {
					ranks[tr.Rank()].Viewed = tr.(rdma.Viewed)
					return &ranks[tr.Rank()]
				}, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, acrossLength, "")
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
		fill(v.Bytes(), float32(w.Rank()))
		if _, err := v.Sync(ctx, 1); err != nil {
			return err
		}
		if x, err := constant(v.Bytes()); err != nil || x != 0.5 {
			return fmt.Errorf("the mean is %v (%v), expected 0.5", x, err)
		}
		return nil
	})
}
