package libmalt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/golang/mock/gomock"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmamock"
	"malt/rdma/rdmatest/inmem"
)

// faulty is a transport in which some calls are another's: a mock's.
type faulty struct {
	rdma.Transport
	mapping   func(bytes int) ([]byte, error)
	share     func(name string, bytes, words int) (rdma.Shared, error)
	publish   func(ctx context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error)
	subscribe func(ctx context.Context, name string, s rdma.Spec, senders []int) ([]rdma.Inbox, error)
}

func (f *faulty) Map(bytes int) ([]byte, error) {
	if f.mapping != nil {
		return f.mapping(bytes)
	}
	return f.Transport.Map(bytes)
}

func (f *faulty) Share(name string, bytes, words int) (rdma.Shared, error) {
	if f.share != nil {
		return f.share(name, bytes, words)
	}
	return f.Transport.Share(name, bytes, words)
}

func (f *faulty) Publish(ctx context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
	if f.publish != nil && name != "world" {
		return f.publish(ctx, name, s, readers)
	}
	return f.Transport.Publish(ctx, name, s, readers)
}

func (f *faulty) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) ([]rdma.Inbox, error) {
	if f.subscribe != nil && name != "world" {
		return f.subscribe(ctx, name, s, senders)
	}
	return f.Transport.Subscribe(ctx, name, s, senders)
}

// with runs body on three ranks, the transport of rank 1 being changed.
func with(t *testing.T, change func(f *faulty), body func(ctx context.Context, w *libmalt.World) error) {
	t.Helper()
	ts := inmem.New(3)
	f := &faulty{Transport: ts[1]}
	change(f)
	ts[1] = f
	for r, err := range run(background(t), ts, body) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

var errShort = fmt.Errorf("%w: 5 GB asked for, 3 GB there", rdma.ErrNoMemory)

// TestMakingFailsOnAllRanks where it fails on one: all hear at once where and
// why, and all can make another vector afterwards.
func TestMakingFailsOnAllRanks(t *testing.T) {
	faults := map[string]func(f *faulty, on *bool){
		"memory of the vector": func(f *faulty, on *bool) {
			tr := f.Transport
			f.share = func(name string, bytes, words int) (rdma.Shared, error) {
				if *on {
					return nil, errShort
				}
				return tr.Share(name, bytes, words)
			}
		},
		"mapping the others' vectors": func(f *faulty, on *bool) {
			tr := f.Transport
			f.share = func(name string, bytes, words int) (rdma.Shared, error) {
				s, err := tr.Share(name, bytes, words)
				if *on {
					s = &unjoined{s}
				}
				return s, err
			}
		},
		"memory of the vector, which is not shared": func(f *faulty, on *bool) {
			tr := f.Transport
			f.mapping = func(bytes int) ([]byte, error) {
				if *on {
					return nil, errShort
				}
				return tr.Map(bytes)
			}
		},
		"memory of the box": func(f *faulty, on *bool) {
			tr := f.Transport
			f.publish = func(ctx context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
				if *on {
					return nil, errShort
				}
				return tr.Publish(ctx, name, s, readers)
			}
		},
		"mapping the others' boxes": func(f *faulty, on *bool) {
			tr := f.Transport
			f.subscribe = func(ctx context.Context, name string, s rdma.Spec, senders []int) ([]rdma.Inbox, error) {
				if *on {
					return nil, errShort
				}
				return tr.Subscribe(ctx, name, s, senders)
			}
		},
	}
	options := map[string]string{
		"memory of the vector, which is not shared": "graph=ring",
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			on := true
			with(t, func(f *faulty) { fault(f, &on) }, func(ctx context.Context, w *libmalt.World) error {
				_, err := vector(ctx, w, 10, options[name])
				if w.Rank() == 1 {
					on = false
				}
				if err := wantErr(err, libmalt.ErrNoMemory); err != nil {
					return err
				}
				if !strings.Contains(err.Error(), "3 GB there") || w.Rank() != 1 && !strings.Contains(err.Error(), "rank 1 failed") {
					return fmt.Errorf("%q does not say what happened where", err)
				}
				v, err := vector(ctx, w, 10, "")
				if err != nil {
					return err
				}
				_, err = v.Sync(ctx, 1)
				return err
			})
		})
	}
}

// unjoined cannot map what the others have made.
type unjoined struct{ rdma.Shared }

func (u *unjoined) Join(context.Context) error { return errShort }

// TestCollectiveWithoutMemory fails on all ranks where one cannot get memory for
// the result, and all can make it again.
func TestCollectiveWithoutMemory(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, v *libmalt.Vector) error{
		"allreduce": func(ctx context.Context, v *libmalt.Vector) error { return v.AllReduce(ctx, "mean") },
		"broadcast": func(ctx context.Context, v *libmalt.Vector) error { return v.Broadcast(ctx, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			short := false
			with(t, func(f *faulty) {
				tr := f.Transport
				f.mapping = func(bytes int) ([]byte, error) {
					if short {
						short = false
						return nil, errShort
					}
					return tr.Map(bytes)
				}
			}, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 10, "start=own consistency=async") // what goes by messages needs memory
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					short = true
				}
				fill(v.Bytes(), float32(w.Rank()))
				if err := wantErr(call(ctx, v), libmalt.ErrNoMemory); err != nil {
					return err
				}
				if at(v.Bytes(), 0) != float32(w.Rank()) {
					return fmt.Errorf("a %s that failed has changed the values", name)
				}
				return call(ctx, v)
			})
		})
	}
}

// TestScatterWithoutMemory returns the error; the clock stays, and a later
// scatter works.
func TestScatterWithoutMemory(t *testing.T) {
	ctrl := gomock.NewController(t)
	with(t, func(f *faulty) {
		tr := f.Transport
		f.publish = func(ctx context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
			out, err := tr.Publish(ctx, name, s, readers)
			m := rdmamock.NewMockOutbox(ctrl)
			gomock.InOrder(
				m.EXPECT().Begin().Return(nil, errShort),
				m.EXPECT().Begin().DoAndReturn(out.Begin),
			)
			m.EXPECT().Commit(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(out.Commit)
			m.EXPECT().Advance(gomock.Any()).DoAndReturn(out.Advance).AnyTimes()
			m.EXPECT().Close().DoAndReturn(out.Close)
			return m, err
		}
	}, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=async")
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			_, err := v.Scatter(ctx, nil, 1)
			if err := wantErr(err, libmalt.ErrNoMemory); err != nil || v.Clock() != 0 {
				return fmt.Errorf("clock %d: %w", v.Clock(), err)
			}
			if _, err := v.Scatter(ctx, nil, 1); err != nil || v.Clock() != 1 {
				return fmt.Errorf("clock %d: %w", v.Clock(), err)
			}
		}
		return w.Barrier(ctx)
	})
}

// TestRowsWithoutMemory: rows of a sparse scatter for whose message there was no
// memory are in the next one, however they came to be in that.
func TestRowsWithoutMemory(t *testing.T) {
	for _, sparse := range []string{"model", "gradient"} {
		for _, named := range []bool{true, false} {
			short := false
			with(t, func(f *faulty) {
				f.publish = func(ctx context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
					out, err := f.Transport.Publish(ctx, name, s, readers)
					return &shortOutbox{out, &short}, err
				}
			}, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 1000, "consistency=async fold=replace sparse="+sparse)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					var rows []int64
					if named {
						rows = []int64{3, 500}
					}
					fill(v.Bytes()[4*3:4*4], 7)
					fill(v.Bytes()[4*500:4*501], 8)
					short = true
					_, err := v.ScatterRows(ctx, rows, nil, 1)
					if err := wantErr(err, libmalt.ErrNoMemory); err != nil || v.Clock() != 0 {
						return fmt.Errorf("clock %d: %w", v.Clock(), err)
					}
					short = false
					if named {
						rows = rows[:0]
					}
					if n, err := v.ScatterRows(ctx, rows, nil, 1); err != nil || n == 0 {
						return fmt.Errorf("sent %d bytes: %w", n, err)
					}
				}
				if err := w.Barrier(ctx); err != nil || w.Rank() == 1 {
					return err
				}
				if n, err := v.Gather(ctx, ""); n != 1 || err != nil {
					return fmt.Errorf("%d updates folded: %w", n, err)
				}
				if a, b := at(v.Bytes(), 3), at(v.Bytes(), 500); a != 7 || b != 8 {
					return fmt.Errorf("%s, rows named %t: rows 3 and 500 are %v and %v, want 7 and 8", sparse, named, a, b)
				}
				return nil
			})
		}
	}
}

// shortOutbox lacks memory while short.
type shortOutbox struct {
	rdma.Outbox
	short *bool
}

func (o *shortOutbox) Reserve(n int) error {
	if *o.short {
		return errShort
	}
	return o.Outbox.Reserve(n)
}

// TestCorruptUpdateIsNotFolded: the gather fails, the vector keeps its values.
func TestCorruptUpdateIsNotFolded(t *testing.T) {
	ctrl := gomock.NewController(t)
	with(t, func(f *faulty) {
		tr := f.Transport
		f.subscribe = func(ctx context.Context, name string, s rdma.Spec, senders []int) ([]rdma.Inbox, error) {
			ins, err := tr.Subscribe(ctx, name, s, senders)
			if err != nil {
				return nil, err
			}
			in, m := ins[0], rdmamock.NewMockInbox(ctrl)
			m.EXPECT().From().DoAndReturn(in.From).AnyTimes()
			m.EXPECT().Clock().DoAndReturn(in.Clock).AnyTimes()
			m.EXPECT().Published().DoAndReturn(in.Published).AnyTimes()
			m.EXPECT().Release(gomock.Any()).Do(in.Release).AnyTimes()
			m.EXPECT().Close().DoAndReturn(in.Close)
			m.EXPECT().Next().Return(rdma.Update{}, false, fmt.Errorf("%w: magic 0", rdma.ErrCorrupt))
			ins[0] = m
			return ins, nil
		}
	}, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=async start=own")
		if err != nil {
			return err
		}
		fill(v.Bytes(), float32(w.Rank()))
		if _, err := v.Scatter(ctx, nil, 1); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			before := bytes.Clone(v.Bytes())
			_, err := v.Gather(ctx, "")
			if !errors.Is(err, rdma.ErrCorrupt) || !bytes.Equal(before, v.Bytes()) {
				return fmt.Errorf("got %v, values %v", err, v.Bytes())
			}
		}
		return nil
	})
}

// TestRankThatCannotJoin: the others name it.
func TestRankThatCannotJoin(t *testing.T) {
	ts := open(t, 3)
	if err := ts[1].Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range run(background(t), []rdma.Transport{ts[0], ts[2]}, nil) {
		if !errors.Is(err, rdma.ErrLeft) || !strings.Contains(err.Error(), "rank 1, which did not join the job\na rank that cannot") {
			t.Errorf("got %v", err)
		}
	}
}
