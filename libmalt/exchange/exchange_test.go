package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// adding is Work on bytes that are added modulo 256: one array per host, as if its
// ranks had added theirs up.
type adding struct{ data []byte }

func (a *adding) Part(dst []byte, off int) { copy(dst, a.data[off:]) }

func (a *adding) Merge(dst []byte, off int, parts []Part) (float64, error) {
	for i := range dst {
		sum := byte(0)
		for _, p := range parts {
			if p.Data == nil {
				sum += a.data[off+i]
			} else {
				sum += p.Data[i]
			}
		}
		dst[i] = sum
	}
	return 1, nil
}

// exchanges runs body on all ranks.
func exchanges(t *testing.T, length int, hosts [][]int, body func(ctx context.Context, rank int, x *Exchange, w *adding, t rdma.Transport) error) {
	t.Helper()
	host := make([]int, len(slices.Concat(hosts...)))
	for h, ranks := range hosts {
		for _, r := range ranks {
			host[r] = h
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), fleet.Patience)
	defer stop()
	plan := NewPlan(length, 8, hosts)
	var all sync.WaitGroup
	for r, tr := range inmem.NewHosts(host...) {
		all.Go(func() {
			defer tr.Close()
			x, err := Publish(ctx, tr, "x", plan, r)
			if err == nil {
				err = x.Join(ctx)
			}
			if err == nil {
				w := &adding{make([]byte, length)}
				for i := range w.data {
					w.data[i] = byte(i * (host[r] + 3))
				}
				err = body(ctx, r, x, w, tr)
			}
			if err != nil {
				t.Errorf("%v, %d bytes: rank %d: %v", hosts, length, r, err)
			}
			if _, err := tr.Words(ctx, "end", 0); err != nil {
				t.Error(err)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// complete goes on until all is there.
func complete(ctx context.Context, t rdma.Transport, x *Exchange, w Work) error {
	var failed error
	err := t.Wait(ctx, func() bool {
		failed = x.Step(w)
		return failed != nil || x.Complete()
	})
	return errors.Join(failed, err)
}

// TestExchange: every length, several in a row, the last of some chunks: each rank
// gets the sums of all that it handles.
func TestExchange(t *testing.T) {
	for i, hosts := range hosts {
		lengths := []int{}
		for n := i % 3; n < 131; n += 3 {
			lengths = append(lengths, n)
		}
		if i%2 == 1 {
			lengths = append(lengths, len(hosts)*(chunkBytes+24))
		}
		for _, length := range lengths {
			exchanges(t, length, hosts, func(ctx context.Context, rank int, x *Exchange, w *adding, tr rdma.Transport) error {
				for number := uint64(3); number < 6; number++ {
					x.Begin(number, rdma.Stamp{Kind: 1}, false)
					if err := complete(ctx, tr, x, w); err != nil {
						return err
					}
					handled := 0
					var bad error
					x.Each(func(off int, sum []byte, weight float64) {
						handled += len(sum)
						want := make([]byte, len(sum))
						for i := range want {
							for h := range hosts {
								want[i] += byte((off + i) * (h + 3))
							}
						}
						if !bytes.Equal(sum, want) || weight != 1 {
							bad = fmt.Errorf("sum at %d differs", off)
						}
					})
					want := 0
					for _, s := range x.plan.Segments {
						if s.By[x.host] == rank {
							want += s.Hi - s.Lo
						}
					}
					if handled != want {
						bad = fmt.Errorf("sums of %d bytes, want %d", handled, want)
					}
					if bad != nil {
						return bad
					}
				}
				return nil
			})
		}
	}
}

// TestExchangeGivenUp: what is left of an exchange that did not come about is not
// taken for the next.
func TestExchangeGivenUp(t *testing.T) {
	exchanges(t, 8*chunkBytes, hosts[1], func(ctx context.Context, rank int, x *Exchange, w *adding, tr rdma.Transport) error {
		words, err := tr.Words(ctx, "given up", 1)
		if err != nil {
			return err
		}
		wrong := &adding{bytes.Repeat([]byte{99}, len(w.data))}
		for number := uint64(1); number < 6; number += 2 {
			if rank != int(number)%4 {
				x.Begin(number, rdma.Stamp{Kind: 1}, false)
				for range 3 {
					if err := x.Step(wrong); err != nil || x.Complete() {
						return fmt.Errorf("complete without rank %d (%v)", number%4, err)
					}
				}
				if late := x.Late(nil); len(late) == 0 || x.Finished() {
					return fmt.Errorf("finished, waiting for %v", late)
				}
			}
			words.Set(0, number)
			if err := tr.Wait(ctx, func() bool {
				for r := range 4 {
					if at, _ := words.Get(r, 0); at < number {
						return false
					}
				}
				return true
			}); err != nil {
				return err
			}
			x.Begin(number+1, rdma.Stamp{Kind: 1}, false)
			if err := complete(ctx, tr, x, w); err != nil {
				return err
			}
			var bad error
			x.Each(func(off int, sum []byte, _ float64) {
				for i, b := range sum {
					if b != byte((off+i)*(3+4+5+6)) {
						bad = fmt.Errorf("exchange %d: sum %d at %d", number+1, b, off+i)
					}
				}
			})
			if bad != nil {
				return bad
			}
		}
		return nil
	})
}

// TestExchangeDiffers: ranks that do not exchange the same find out before anybody
// is through.
func TestExchangeDiffers(t *testing.T) {
	exchanges(t, 800, hosts[1], func(ctx context.Context, rank int, x *Exchange, w *adding, tr rdma.Transport) error {
		x.Begin(1, rdma.Stamp{Kind: uint16(rank / 3)}, false)
		if err := complete(ctx, tr, x, w); !errors.Is(err, ErrDiffers) {
			return fmt.Errorf("%v, want that they differ", err)
		}
		return nil
	})
}

// hostile is an inbox in which something else comes.
type hostile struct {
	rdma.Inbox
	change func(u *rdma.Update)
}

func (h *hostile) Next() (rdma.Update, bool, error) {
	u, ok, err := h.Inbox.Next()
	if ok {
		h.change(&u)
	}
	return u, ok, err
}

// TestExchangeCorrupt: what another rank sends is not believed.
func TestExchangeCorrupt(t *testing.T) {
	for name, change := range map[string]func(u *rdma.Update){
		"shorter":   func(u *rdma.Update) { u.Data = u.Data[1:] },
		"elsewhere": func(u *rdma.Update) { u.Tag++ },
		"a sum":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			exchanges(t, 800, hosts[0], func(ctx context.Context, rank int, x *Exchange, w *adding, tr rdma.Transport) error {
				if rank == 0 && change != nil {
					x.own[0].from[1].inbox = &hostile{x.own[0].from[1].inbox, change}
				} else if rank == 0 {
					x.others[0].sums[0].inbox = &hostile{x.others[0].sums[0].inbox, func(u *rdma.Update) { u.Data = u.Data[1:] }}
				}
				x.Begin(1, rdma.Stamp{}, false)
				if rank == 1 {
					var failed error
					err := tr.Wait(ctx, func() bool {
						failed = x.Step(w)
						return failed != nil || x.Finished()
					})
					return errors.Join(failed, err)
				}
				if err := complete(ctx, tr, x, w); !errors.Is(err, rdma.ErrCorrupt) {
					return fmt.Errorf("%v, want that it is corrupt", err)
				}
				return nil
			})
		})
	}
}
