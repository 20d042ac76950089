package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/fabric"
	"malt/rdma/internal/bell"
	"malt/rdma/internal/ends"
	"malt/rdma/wire"
)

// rank is what a rank's transport and its subs have in common.
type rank struct {
	cfg   Config
	wire  wire.Wire
	card  *card // nil: there is none
	near  []int // this rank alone
	meter *box.Meter
	bells bell.Doorbell // the first one, by which all can be rung
	links []*link       // by peer; nil for this rank itself and near ones
	peers []*link       // the others
	ranks []*link       // of these, the ones that are no witnesses
	ends  []end         // by rank
	later later
	ins   ends.Sources

	without atomic.Pointer[error]     // why it does without RDMA, at least for some of its memory
	lack    atomic.Pointer[rdma.Lack] // the first

	found    atomic.Pointer[[]obituary] // deaths, to be told
	members  atomic.Pointer[Members]    // from Survive on
	doubting atomic.Bool                // links count silence as they do from Survive on
	failed   chan *link                 // those that will never have a connection
	unwatch  chan struct{}
	watching sync.WaitGroup

	mu     sync.Mutex        // guards what follows, and the tables of the links
	lastID uint32            // of boxes and words of ours
	outs   map[string]bool   // names of boxes that are open
	words  map[string]*words // that did not come about (yet), by name; nil value: in use
}

// end is nil while the rank takes part, then for ever rdma.ErrLeft or a
// *rdma.PeerError.
type end struct{ err atomic.Pointer[error] }

// linkBells + peer is the number of the bell that has the link to peer look for
// something to send.
const linkBells = 1 << 32

// ring is box.End.Ring.
func (r *rank) ring(id uint64) {
	if id < linkBells {
		r.bells.RingBell(id)
	} else if peer := id - linkBells; peer < uint64(len(r.links)) && r.links[peer] != nil {
		r.links[peer].ring()
	}
}

func (r *rank) state(rank int) error {
	if e := r.ends[rank].err.Load(); e != nil {
		return *e
	}
	return nil
}

// finish sets the final state of a rank, unless it has one, and tells all who
// wait.
func (r *rank) finish(rank int, err error) {
	if r.ends[rank].err.CompareAndSwap(nil, &err) {
		r.bells.RingBells()
	}
}

// Transport is one rank with one doorbell; Sub makes another one of the same
// rank.
type Transport struct {
	*rank
	bell   bell.Doorbell
	parent *Transport // nil but for a sub
	open   ends.Set   // boxes, words and subs
}

var _ rdma.Transport = (*Transport)(nil)

// Open connects this rank with all others and returns when that is done. It
// fails with rdma.ErrConfig where a rank was told something else than this
// one, and otherwise when ctx is done, with what stood in the way of each
// connection that is missing.
//
// The transport takes over w and c.Fabric and closes them, also when Open fails.
func Open(ctx context.Context, c Config, w wire.Wire) (*Transport, error) {
	card, err := newCard(c.Fabric, c.Size)
	if err != nil && c.FabricNeeded && !errors.Is(err, fabric.ErrMemlock) {
		w.Close()
		return nil, err
	} else if err != nil {
		c.NoFabric = err
	} else if card != nil {
		go card.run()
	}
	r, err := newRank(c, w)
	if err != nil {
		w.Close()
		card.close()
		return nil, err
	}
	r.card = card
	if c.NoFabric != nil {
		r.lacks(c.NoFabric)
	}
	for _, l := range r.peers {
		go l.run()
	}
	if len(r.peers) > 0 {
		r.watching.Go(r.watch)
	}
	if err := r.await(ctx); err != nil {
		newTransport(r, r.bells, nil).Abort(rdma.HasFailed(c.Rank, "it could not connect to all others: "+err.Error()))
		for _, l := range r.peers {
			l.stop()
		}
		r.close()
		return nil, err
	}
	w.Settled()
	return newTransport(r, r.bells, nil), nil
}

// newRank lets others in; its links do nothing yet.
func newRank(c Config, w wire.Wire) (*rank, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &rank{
		cfg: c, wire: w, near: []int{c.Rank}, meter: box.NewMeter(c.Size),
		links: make([]*link, c.peers()), ends: make([]end, c.peers()),
		failed: make(chan *link, c.peers()), unwatch: make(chan struct{}),
		outs: map[string]bool{}, words: map[string]*words{},
	}
	r.later.rank = r
	if r.bells = c.Bell; r.bells == nil {
		r.bells = newBell(&bell.Set{})
	}
	for peer := range c.peers() {
		if c.reaches(peer) {
			r.addLink(peer)
			if len(w.Addresses(peer)) == 0 {
				return nil, say.Errorf(rdma.ErrConfig, "rank %d has no address", peer)
			}
		}
	}
	return r, w.Listen(wire.Host{
		Rank: c.Rank, Size: c.peers(), Generation: c.Generation, Permit: r.permit,
		Offer: func(from int, c wire.Conn) { r.links[from].offer(newConn(c)) },
	})
}

// close waits for the links to end.
func (r *rank) close() {
	r.join()
	r.later.stop()
	r.wire.Close()
	r.card.close()
	close(r.unwatch)
	r.watching.Wait()
}

func newTransport(r *rank, d bell.Doorbell, parent *Transport) *Transport {
	return &Transport{rank: r, bell: d, parent: parent}
}

func (t *Transport) Name() string { return t.wire.Name() }
func (t *Transport) Rank() int    { return t.cfg.Rank }
func (t *Transport) Size() int    { return t.cfg.Size }
func (t *Transport) Near() []int  { return t.near }

// Reaches tells whether there is, or was, a connection to rank.
func (t *Transport) Reaches(rank int) bool { return t.cfg.reaches(rank) }

// Ring rings a doorbell of this machine, or has a link look for something to send.
func (t *Transport) Ring(bell uint64) { t.ring(bell) }

// Wait also ends when this transport is closed.
func (t *Transport) Wait(ctx context.Context, step func() bool) error {
	return t.open.Wait(ctx, t.Rank(), t.bell, step)
}

func (t *Transport) Wake() { t.bell.Wake() }

// Sub is for a rank that has its own doorbells; SubAt, for one that was given one.
func (t *Transport) Sub() (rdma.Transport, error) { return t.SubAt(newBell(t.bell.(ownBell).set)) }

func (t *Transport) SubAt(d bell.Doorbell) (rdma.Transport, error) {
	s := newTransport(t.rank, d, t)
	if err := ends.Adopt(&t.open, s); err != nil {
		return nil, fmt.Errorf("rank %d: Sub: %w", t.Rank(), err)
	}
	return s, nil
}

func (t *Transport) State(peer int) error {
	if peer < 0 || peer >= len(t.ends) {
		return fmt.Errorf("no rank %d among %d", peer, len(t.ends))
	}
	return t.state(peer)
}

// Traffic counts wire bytes besides: frames with their headers, over all
// connections with peer, without the headers of TCP.
func (t *Transport) Traffic(peer int) rdma.Traffic {
	c := t.meter.Traffic(peer)
	if peer >= 0 && peer < len(t.links) && t.links[peer] != nil {
		l := t.links[peer]
		c.SentWire, c.ReceivedWire = l.wireBytes()
		c.SentPlaced, c.ReceivedPlaced, c.RDMA = l.sentPlaced.Load(), l.receivedPlaced.Load(), l.rdma()
	}
	return c
}

// Frames is how many frames have been sent to peer, and have landed from it, over their
// connection; calm: there is one, and no more are to be sent, neither now nor in a moment.
// over: nothing is sent or lands any more.
func (t *Transport) Frames(peer int) (sent, landed uint64, calm, over bool) {
	l := t.links[peer]
	if l == nil {
		return 0, 0, true, true
	}
	select {
	case <-l.ended:
		over = true
	default:
	}
	if s := l.session.Load(); s != nil {
		_, connected := s.conn.state()
		sent, landed = s.posted.Load()+s.recorded.Load(), s.landed.Load()
		calm = connected && !t.later.pending() && !l.dirty.Load() && s.idle.Load()
	}
	return sent, landed, calm, over
}

// Abort tells the others and waits for a moment until they have been sent the
// news, since the process may be about to end.
func (t *Transport) Abort(why *rdma.PeerError) {
	r := t.rank
	r.finish(t.Rank(), why)
	if !errors.As(r.state(t.Rank()), new(*rdma.PeerError)) {
		return // it has left
	}
	for _, l := range r.peers {
		l.abort(why)
	}
	r.joinWithin(abortPatience)
}

// Close closes what is open, and then the rank: whoever sees that it has left
// has got all that it published. A peer that takes nothing for as long as its
// host may be silent is not waited for.
func (t *Transport) Close() error {
	open, ok := t.open.Shut()
	if !ok {
		return nil
	}
	var errs []error
	for _, c := range open {
		errs = append(errs, c.Close())
	}
	if t.parent != nil {
		t.parent.open.Forget(t)
		t.bell.Wake()
		return errors.Join(errs...)
	}
	r := t.rank
	r.finish(t.Rank(), rdma.ErrLeft)
	for _, l := range r.peers {
		go l.leave()
	}
	r.close()
	t.bell.Wake()
	return errors.Join(errs...)
}

// newID numbers a box or words. r.mu is held.
func (r *rank) newID() uint32 {
	r.lastID++
	return r.lastID
}
