package mixed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/bell"
)

// Near is the half that connects the ranks of one machine.
type Near interface {
	half
	bell.Doorbell
	// PublishBeyond is Publish, also for readers that are far.
	PublishBeyond(name string, s rdma.Spec, near, far []int, by box.Relayer) (rdma.Outbox, error)
	// CloseEnds closes what is open, and does not leave.
	CloseEnds() error
}

// Far is the half that connects machines.
type Far interface {
	half
	box.Relayer
	Reaches(rank int) bool // it is on another machine
	// Await returns when Subscribe would not wait, or with the error of hopeless.
	Await(ctx context.Context, name string, s rdma.Spec, senders []int, hopeless func() error) error
	// SubAt is Sub with a doorbell of the other half.
	SubAt(bell.Doorbell) (rdma.Transport, error)
}

type half interface {
	rdma.Transport
	rdma.Connected
}

// transport is one rank, or a sub of it, which waits at the doorbell of its near half.
type transport struct {
	near Near
	far  Far

	mu    sync.Mutex
	words map[string]*words // whose halves did not both come about (yet), by name
}

var _ rdma.Transport = (*transport)(nil)

// Open joins this rank with those of its machine, and then connects it with all others.
// The near half asks elsewhere for the state of a far rank.
func Open(near func(elsewhere func(rank int) error) (Near, error), far func(near Near) (Far, error)) (rdma.Transport, error) {
	// Until both halves are there nobody asks for the state of a far rank.
	var beyond atomic.Pointer[Far]
	here, err := near(func(rank int) error {
		if t := beyond.Load(); t != nil {
			return (*t).State(rank)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	there, err := far(here)
	if err != nil {
		here.Abort(rdma.HasFailed(here.Rank(), "it could not connect to other hosts: "+err.Error()))
		return nil, errors.Join(err, here.Close())
	}
	beyond.Store(&there)
	return join(here, there), nil
}

func join(near Near, far Far) *transport {
	return &transport{near: near, far: far, words: map[string]*words{}}
}

func (t *transport) Name() string { return t.near.Name() + "+" + t.far.Name() }
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
	near, err := t.near.Sub()
	if err != nil {
		return nil, err
	}
	far, err := t.far.SubAt(near.(Near))
	if err != nil {
		return nil, errors.Join(err, near.Close())
	}
	return join(near.(Near), far.(Far)), nil
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
