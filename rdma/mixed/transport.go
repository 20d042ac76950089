package mixed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/rendezvous"
	"malt/rdma/shm"
	"malt/rdma/tcp"
)

// transport is one rank, or a sub of it, with a doorbell in shared memory.
type transport struct {
	near *shm.Transport
	far  *tcp.Transport

	mu    sync.Mutex
	words map[string]*words // whose halves did not both come about (yet), by name
}

var _ rdma.Transport = (*transport)(nil)

// Open joins this rank with those of its machine, near.Members, and connects it
// with all others. far is for the same job; Open fills in what concerns the
// machine.
func Open(ctx context.Context, near rendezvous.Config, far tcp.Config) (rdma.Transport, error) {
	// Until both halves are there nobody asks for the state of a far rank.
	var beyond atomic.Pointer[tcp.Transport]
	near.Elsewhere = func(rank int) error {
		if t := beyond.Load(); t != nil {
			return t.State(rank)
		}
		return nil
	}
	here, err := shm.Open(ctx, near)
	if err != nil {
		for _, l := range far.Listeners {
			l.Close()
		}
		return nil, err
	}
	far.Near, far.Bell = near.Members, doorbell{here}
	there, err := tcp.Open(ctx, far)
	if err != nil {
		here.Abort(rdma.HasFailed(here.Rank(), "it could not connect to other hosts: "+err.Error()))
		return nil, errors.Join(err, here.Close())
	}
	beyond.Store(there)
	return &transport{near: here, far: there, words: map[string]*words{}}, nil
}

// doorbell is where a rank, or a sub of it, waits.
type doorbell struct{ *shm.Transport }

var _ tcp.Doorbell = doorbell{}

func (b doorbell) WaitFor(ctx context.Context, step func() (bool, error)) (err error) {
	if waited := b.Wait(ctx, func() (ok bool) {
		ok, err = step()
		return ok || err != nil
	}); waited != nil {
		err = waited
	}
	return err
}

func (t *transport) Name() string { return "shm+tcp" }
func (t *transport) Rank() int    { return t.near.Rank() }
func (t *transport) Size() int    { return t.near.Size() }
func (t *transport) Near() []int  { return t.near.Near() }

func (t *transport) Map(bytes int) ([]byte, error) { return t.near.Map(bytes) }
func (t *transport) Unmap(b []byte) error          { return t.near.Unmap(b) }

func (t *transport) Share(name string, bytes, words int) (rdma.Shared, error) {
	return t.near.Share(name, bytes, words)
}

func (t *transport) Wait(ctx context.Context, step func() bool) error { return t.near.Wait(ctx, step) }
func (t *transport) Wake()                                            { t.near.Wake() }

// State of a far rank is what the near half asks the far one for.
func (t *transport) State(peer int) error { return t.near.State(peer) }

// Connection implements rdma.Connected.
func (t *transport) Connection(peer int) rdma.Connection {
	if t.far.Reaches(peer) {
		return t.far.Connection(peer)
	}
	return t.near.Connection(peer)
}

// Abort tells those elsewhere first: it may take a moment until they have been
// sent the news, and the ranks of this machine end the job.
func (t *transport) Abort(why *rdma.PeerError) {
	t.far.Abort(why)
	t.near.Abort(why)
}

func (t *transport) Traffic(peer int) rdma.Traffic {
	n, f := t.near.Traffic(peer), t.far.Traffic(peer)
	n.SentMessages += f.SentMessages
	n.SentBytes += f.SentBytes
	n.ReceivedMessages += f.ReceivedMessages
	n.ReceivedBytes += f.ReceivedBytes
	n.SentWire, n.ReceivedWire = f.SentWire, f.ReceivedWire
	return n
}

func (t *transport) Sub() (rdma.Transport, error) {
	near, err := t.near.NewSub()
	if err != nil {
		return nil, err
	}
	far, err := t.far.SubAt(doorbell{near})
	if err != nil {
		return nil, errors.Join(err, near.Close())
	}
	return &transport{near: near, far: far, words: map[string]*words{}}, nil
}

// Close closes what is open in both halves before it leaves by either: who sees
// that this rank has left has got all that it published, and boxes are relayed
// out of memory that is there until the far half has ended.
func (t *transport) Close() error {
	err := t.near.CloseEnds()
	t.mu.Lock()
	for _, w := range t.words {
		err = errors.Join(err, w.drop())
	}
	clear(t.words)
	t.mu.Unlock()
	return errors.Join(err, t.far.Close(), t.near.Close())
}

// split takes ranks apart: those of this machine, and others. What is no rank at
// all is near, where it is found out.
func (t *transport) split(ranks []int) (near, far []int) {
	for _, r := range ranks {
		if t.far.Reaches(r) {
			far = append(far, r)
		} else {
			near = append(near, r)
		}
	}
	return near, far
}
