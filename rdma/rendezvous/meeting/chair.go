package meeting

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"malt/rdma"
	"malt/rdma/internal/dial"
	"malt/rdma/internal/handshake"
)

// chair is rank 0's part: it lets the others in, knows who is there, and has the
// last word.
type chair struct {
	*party
	self  *handshake.Self
	store *store

	mu      sync.Mutex
	seats   []seat
	strange string        // who was last refused, and why: for messages
	advice  string        // about that
	changed chan struct{} // closed, and made anew, when any of this changes
	news    []byte        // for those who wait; nil: to be made
	last    []byte        // the last word, once there is one
	over    chan struct{} // closed when there is
	failed  error         // what ended the meeting
}

// seat is a rank's place in the meeting.
type seat struct {
	c    *conn // nil: it has not come
	card *card
	got  bool // it has the table
}

// preside is Meet on rank 0.
func preside(ctx context.Context, p *party) (t *Table, ls []net.Listener, err error) {
	h := &chair{
		party: p, self: newSelf(&p.Config), seats: make([]seat, p.Size),
		changed: make(chan struct{}), over: make(chan struct{}),
	}
	h.seats[0] = seat{card: &p.card, got: true}
	if len(p.StoreFD) > 0 {
		h.store, err = inherit(p.StoreFD)
	} else if p.Size > 1 {
		h.store, err = openStore(ctx, p.places, p.own, p.chosen, resolve)
	}
	if err != nil {
		return nil, nil, err
	}
	if p.Size == 1 {
		if h.store != nil {
			h.store.close()
		}
		return layout(newJob(), []*card{&p.card}).view(0, nil, netip.Addr{}, nil), nil, nil
	}
	meeting, end := context.WithCancel(context.Background())
	door := handshake.OpenDoor(h.store.listeners, p.Size, newConn, func(c *conn, visit handshake.Visit) { h.greet(meeting, c, visit) })
	t, ls, err = h.run(ctx)
	if err != nil {
		h.linger(ctx)
	}
	end()
	door.Close()
	return t, ls, err
}

// run returns when all ranks have the table, or the meeting has failed.
func (h *chair) run(ctx context.Context) (t *Table, ls []net.Listener, err error) {
	watch := time.NewTicker(lookEvery)
	defer watch.Stop()
	for {
		h.mu.Lock()
		absent, deaf, detail, do := h.absent(), h.deaf(), h.detail(), h.advice
		changed, failed := h.changed, h.failed
		h.mu.Unlock()
		switch {
		case failed != nil:
			return nil, ls, failed
		case len(absent) == 0 && t == nil:
			if t, ls, err = h.conclude(); err != nil {
				h.fail(err)
			}
			continue
		case len(deaf) == 0:
			return t, ls, nil
		}
		h.report(absent, detail, do)
		select {
		case <-changed:
		case <-watch.C:
			h.listenFor()
		case <-ctx.Done():
			h.fail(h.waited(absent, detail, do, ctx.Err()))
		}
	}
}

// linger is for ranks that are just coming to a meeting that has failed: so they
// hear why, and do not look for rank 0 until they run out of time.
func (h *chair) linger(ctx context.Context) {
	h.mu.Lock()
	absent := h.absent()
	h.mu.Unlock()
	if len(absent) == 0 {
		return
	}
	timer := time.NewTimer(longest + 100*time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// absent lists the ranks that have not come, deaf those that have not said that
// they have the table; mu is held.
func (h *chair) absent() (ranks []int) {
	for r, s := range h.seats {
		if s.card == nil {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (h *chair) deaf() (ranks []int) {
	for r, s := range h.seats {
		if !s.got {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// detail is what stands in the way, as far as rank 0 knows; mu is held.
func (h *chair) detail() string {
	return joined(h.store.note, h.strange)
}

// change wakes all who look at the state; mu is held.
func (h *chair) change() {
	h.news = nil
	close(h.changed)
	h.changed = make(chan struct{})
}

// note keeps what was odd about a connection, for messages.
func (h *chair) note(strange, advice string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.strange, h.advice = strange, advice
	h.change()
}

// conclude makes the table, once all are there.
func (h *chair) conclude() (*Table, []net.Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var met []netip.Addr // where rank 0 was reached
	cards := make([]*card, len(h.seats))
	for r, s := range h.seats {
		cards[r] = s.card
		if s.c != nil && !slices.Contains(met, s.c.here()) {
			met = append(met, s.c.here())
		}
	}
	ls, err := h.listen(met...)
	if err != nil {
		return nil, ls, err
	}
	table := layout(newJob(), cards)
	h.finish(&message{Table: table})
	return table.view(0, ips(h.own), netip.Addr{}, zones(h.own)), ls, nil
}

// finish sets the last word, unless there is one; mu is held.
func (h *chair) finish(m *message) {
	if h.last == nil {
		h.last = m.encode()
		close(h.over)
	}
	h.change()
}

// fail ends the meeting.
func (h *chair) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failWith(err)
}

// failWith is fail with mu held.
func (h *chair) failWith(err error) {
	if h.failed != nil {
		return
	}
	h.failed = err
	h.finish(&message{Failed: failureOf(err)})
	for _, s := range h.seats {
		if s.c != nil {
			_ = s.c.SetDeadline(time.Now().Add(farewell))
		}
	}
}

// lost ends the meeting because of the death of a rank.
func (h *chair) lost(rank int, kind rdma.Death, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[rank]
	if s.got {
		return
	}
	h.failWith(&rdma.PeerError{Rank: rank, Kind: kind, Op: "malt.init", Err: fmt.Errorf("%s (%s)", fmt.Sprintf(format, args...), s.who())})
}

// who says where a rank is.
func (s *seat) who() string {
	if s.c == nil {
		return fmt.Sprintf("on host %s, process %d", s.card.Name, s.card.Pid)
	}
	return fmt.Sprintf("on host %s at %v, process %d", s.card.Name, s.c.there(), s.card.Pid)
}

// listenFor looks for hosts that are gone: what they said last was that they
// were there.
func (h *chair) listenFor() {
	h.mu.Lock()
	seats := slices.Clone(h.seats)
	h.mu.Unlock()
	for r, s := range seats {
		if s.c != nil && !s.got && s.c.silent(h.Unreachable) {
			h.lost(r, rdma.Unreachable, "%v", dial.Silent(h.Unreachable, nil, s.c.there().String()))
			s.c.Close()
		}
	}
}
