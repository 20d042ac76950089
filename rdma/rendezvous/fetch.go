package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// refusedError is a peer's refusal: asking again would not help.
type refusedError struct{ why *say.Error }

func (e *refusedError) Error() string { return e.why.Error() }
func (e *refusedError) Unwrap() error { return e.why }

// refused is the refusal by a rank, which was told another job than this one.
func refused(rank int, why say.Error) error {
	why.Kind, why.What = rdma.ErrConfig, fmt.Sprintf("rank %d refused this one: %s", rank, why.What)
	return &refusedError{&why}
}

// ask sends a request over a fresh connection and returns the reply. The caller
// owns the descriptors.
func (c *Config) ask(with *conn, kind uint16, name string, to int) (reply, []int, error) {
	m := request{
		Version: protocol, Kind: kind, Rank: uint32(c.Rank), Size: uint32(c.Size),
		Pid: uint32(os.Getpid()), Token: []byte(c.Token), Name: []byte(name),
	}
	if err := with.send(encode(&m)); err != nil {
		return reply{}, nil, err
	}
	b, fds, err := with.receive()
	if err != nil {
		return reply{}, nil, err
	}
	r, err := decode[reply](b)
	if err == nil && r.Refused != "" {
		err = refused(to, *say.Unpack(nil, r.Refused))
	}
	if err != nil {
		closeAll(fds)
		return reply{}, nil, err
	}
	return r, fds, nil
}

// fetching is one sender's region on its way to us.
type fetching struct {
	from   int
	conn   *conn // to confirm on
	region *Region
	err    error // final
	used   bool
}

// Fetch waits until each rank in from has announced name with this rank among
// the readers, and calls use for each, in the caller's goroutine, as they come;
// i is the place in from. Files are closed after use, which maps what it needs.
//
// When ctx ends or something fails all is as if Fetch had not been called: the
// senders keep their regions for the next attempt. A sender that is gone before
// it has announced gives *rdma.PeerError or rdma.ErrLeft. use must not block.
func (h *Host) Fetch(ctx context.Context, bell int, p Policy, name string, from []int, use func(i int, r Region) error) error {
	if !h.guard.Enter() {
		return rdma.ErrClosed
	}
	defer h.guard.Exit()
	if err := h.CheckRanks("senders", from); err != nil {
		return fmt.Errorf("fetching %s: %w", name, err)
	}
	var (
		mu      sync.Mutex // of what the goroutines hand over
		all     = make([]fetching, len(from))
		workers sync.WaitGroup
	)
	inner, cancel := context.WithCancel(h.ctx)
	finish := func(confirm bool) {
		cancel()
		workers.Wait()
		for i := range all {
			all[i].finish(confirm)
		}
	}
	for i, rank := range from {
		f := &all[i]
		f.from = rank
		workers.Go(func() {
			got := h.fetch(inner, name, rank)
			mu.Lock()
			f.conn, f.region, f.err = got.conn, got.region, got.err
			mu.Unlock()
			h.Ring(h.BellID(bell))
		})
	}
	var missing []int
	var failed error
	err := h.Wait(ctx, bell, p, func() bool {
		mu.Lock()
		defer mu.Unlock()
		missing = missing[:0]
		for i := range all {
			f := &all[i]
			if f.used {
				continue
			}
			// The state first: a region that came before its sender went counts.
			state := h.State(f.from)
			switch {
			case f.region != nil:
				f.used = true
				failed = use(i, *f.region)
				f.closeFiles()
			case f.err != nil:
				failed = f.err
			case state == rdma.ErrLeft:
				failed = fmt.Errorf("rank %d did not announce %s: %w", f.from, name, state)
			case state != nil:
				failed = peerError(state, "waiting for "+name)
			default:
				missing = append(missing, f.from)
			}
			if failed != nil {
				return true
			}
		}
		return len(missing) == 0
	})
	finish(err == nil && failed == nil)
	if failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("waited for %s to announce %s: %w", say.Ranks(missing), name, err)
	}
	return nil
}

// fetch asks one sender until it answers, refuses, or ctx ends. A broken
// connection says nothing: if the sender is gone its state will say so.
func (h *Host) fetch(ctx context.Context, name string, from int) (f fetching) {
	for wait := backoff(0); ; wait = wait.next() {
		c, err := dial(ctx, h.job, from)
		if err == nil {
			stop := c.interruptible(ctx)
			var m reply
			var fds []int
			m, fds, err = h.cfg.ask(c, wantRegion, name, from)
			stop()
			var files []*mem.File
			if err == nil {
				if files, err = m.files(fds); err != nil {
					err = refused(from, say.Of(err))
				}
			}
			if err == nil {
				return fetching{conn: c, region: &Region{m.Text, m.Readers, files}}
			}
			c.Close()
		}
		if errors.As(err, new(*refusedError)) || errors.Is(err, errStranger) || errors.Is(err, errFull) {
			return fetching{err: err}
		}
		if wait.sleep(ctx) != nil {
			return fetching{}
		}
	}
}

// finish gives back what fetch brought, and confirms that it is mapped.
func (f *fetching) finish(confirm bool) {
	f.closeFiles()
	if f.conn != nil {
		if confirm {
			_ = f.conn.SetDeadline(noDeadline)
			_, _ = f.conn.Write([]byte{1})
		}
		f.conn.Close()
	}
}

func (f *fetching) closeFiles() {
	if f.region != nil {
		for _, file := range f.region.Files {
			file.Close()
		}
	}
}
