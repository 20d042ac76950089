package mixed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/bell"
	"malt/rdma/membership"
	"malt/rdma/vote"
)

// Near is the half that connects the ranks of one machine.
type Near interface {
	rdma.Viewed
	rdma.Connected
	bell.Doorbell
	// PublishBeyond is Publish, also for readers that are far.
	PublishBeyond(name string, s rdma.Spec, near, far []int, by box.Relayer) (rdma.Outbox, error)
	// CloseEnds closes what is open, and does not leave.
	CloseEnds() error
	// Ballots is the page of this host.
	Ballots() membership.Home
}

// Far is the half that connects machines.
type Far interface {
	rdma.Transport
	rdma.Connected
	rdma.Lacking
	box.Relayer
	Reaches(rank int) bool // it is on another machine
	// Await returns when Subscribe would not wait, or with the error of hopeless.
	Await(ctx context.Context, name string, s rdma.Spec, senders []int, hopeless func() error) error
	// SubAt is Sub with a doorbell of the other half.
	SubAt(bell.Doorbell) (rdma.Transport, error)

	// The rest is for a job that goes on when ranks die: see package remote.
	Survive(members interface {
		Land(peer int, k vote.Kind, arg uint32, body []byte) error
		Has(rank int) bool
		Expelled(peer int)
		Farewell() uint64
	})
	Post(peer int, k vote.Kind, arg uint32, body []byte)
	Doubted(peer int) bool
	Gone(peer int) bool
	Left(peer int) (farewell uint64, left bool)
	Said(peer int) bool // its end is its own last word
	Review()
}

// transport is one rank, or a sub of it, which waits at the doorbell of its near half.
type transport struct {
	near Near
	far  Far

	mu    sync.Mutex
	words map[string]*words       // whose halves did not both come about (yet), by name
	taken map[string][]rdma.Inbox // from near ranks, where those from far ones could not be, by name
}

var _ rdma.Transport = (*transport)(nil)

// Elsewhere is what the near half asks about far ranks.
type Elsewhere struct {
	State func(rank int) error
	Said  func(rank int) bool // State is its own last word
}

// Open joins this rank with those of its machine, and then connects it with all others. With
// voting the job can go on when ranks die.
func Open(voting *Voting, near func(Elsewhere) (Near, error), far func(near Near) (Far, error)) (rdma.Transport, error) {
	// Until both halves are there nobody asks for the state of a far rank.
	var beyond atomic.Pointer[Far]
	here, err := near(Elsewhere{
		State: func(rank int) error {
			if t := beyond.Load(); t != nil {
				return (*t).State(rank)
			}
			return nil
		},
		Said: func(rank int) bool { return (*beyond.Load()).Said(rank) },
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
	t := join(here, there)
	if voting != nil {
		return &surviving{transport: t, voting: voting, members: new(atomic.Pointer[membership.Members])}, nil
	}
	return t, nil
}

func join(near Near, far Far) *transport {
	return &transport{near: near, far: far, words: map[string]*words{}, taken: map[string][]rdma.Inbox{}}
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

func (t *transport) Lacks() *rdma.Lack { return t.far.Lacks() }

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
	n.SentPlaced, n.ReceivedPlaced, n.RDMA = f.SentPlaced, f.ReceivedPlaced, f.RDMA
	return n
}

func (t *transport) Sub() (rdma.Transport, error) {
	s, err := t.sub()
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (t *transport) sub() (*transport, error) {
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
