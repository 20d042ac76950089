package meeting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"malt/rdma"
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
	if p.StoreFD > 0 {
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
	door := handshake.OpenDoor(h.store.listeners, newConn, func(c *conn, known func() bool) { h.greet(meeting, c, known) })
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
		absent, deaf, detail := h.absent(), h.deaf(), h.detail()
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
		h.report(absent, detail)
		select {
		case <-changed:
		case <-watch.C:
			h.listenFor()
		case <-ctx.Done():
			h.fail(h.waited(absent, detail, ctx.Err()))
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
	list := []string{h.store.note, h.strange}
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), "; ")
}

// change wakes all who look at the state; mu is held.
func (h *chair) change() {
	h.news = nil
	close(h.changed)
	h.changed = make(chan struct{})
}

// note keeps what was odd about a connection, for messages.
func (h *chair) note(c *conn, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.strange = fmt.Sprintf("%v was refused: %s", c.RemoteAddr(), fmt.Sprintf(format, args...))
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
func (h *chair) lost(rank int, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[rank]
	if s.got {
		return
	}
	h.failWith(&rdma.PeerError{Rank: rank, Op: "meeting", Err: fmt.Errorf("%s (%s)", fmt.Sprintf(format, args...), s.who())})
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
		if s.c != nil && !s.got && s.c.silent() {
			h.lost(r, "its host has not answered for %v: it is off, or the network between is cut", silence)
			s.c.Close()
		}
	}
}

// greet is all that happens over one connection.
func (h *chair) greet(meeting context.Context, c *conn, known func() bool) {
	defer c.Close()
	trust := func() {}
	if h.TLS != nil {
		c.Conn, trust = handshake.Server(c.raw, h.TLS)
	}
	in := false
	hello, err := h.self.Accept(c.Conn, func(h *handshake.Hello) handshake.Verdict {
		in = known()
		trust()
		return permit(h)
	})
	if err != nil {
		h.refused(c, hello, err)
	}
	if !in || err != nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(cardPatience))
	stop := context.AfterFunc(meeting, func() { _ = c.SetDeadline(time.Now().Add(farewell)) })
	m, err := receive(c, maxFromRank)
	stop()
	if err != nil || c.SetDeadline(time.Time{}) != nil {
		return // it has come by another way, or has ended
	}
	if m.Leaving != nil {
		h.fail(&rdma.PeerError{Rank: int(hello.From), Op: "meeting", Err: fmt.Errorf("it gave up: %s (at %v)", m.Leaving.Why, c.there())})
	}
	if m.Here == nil {
		return
	}
	if f := h.admit(c, hello, m.Here); f != nil {
		c.say(&message{Failed: f})
		return
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		h.tell(c)
	}()
	h.hear(c, int(hello.From)) // after that there is a last word
	<-told
}

// permit lets in whoever has the token; for what else is to be said there are
// words (admit).
func permit(h *handshake.Hello) handshake.Verdict {
	if h.From == 0 || h.From >= MaxSize || h.To != 0 {
		return handshake.NoSuchRank
	}
	return handshake.Accepted
}

// refused notes who could not come in, if it tried to.
func (h *chair) refused(c *conn, hello *handshake.Hello, err error) {
	var refusal *handshake.Refusal
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &refusal):
		h.note(c, "it says that it is rank %d of %d, and %v", hello.From, hello.Size, refusal)
	case errors.As(err, &plain), errors.Is(err, handshake.ErrTLS):
		h.note(c, "either it or rank 0 encrypts, and the other does not; encrypt on all ranks or on none")
	}
}

// admit gives a rank its seat, or says why not.
func (h *chair) admit(c *conn, hello *handshake.Hello, said *card) *failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		return failureOf(h.failed)
	}
	comer := seat{c: c, card: said}
	rank, here := int(hello.From), h.seats[0]
	mistake := ""
	switch {
	case said.Version != h.Version:
		mistake = fmt.Sprintf("rank %d (%s) has MALT %s, and rank 0 (%s) has %s; all hosts need the same version",
			rank, comer.who(), said.Version, here.who(), h.Version)
	case int(hello.Size) != h.Size:
		mistake = fmt.Sprintf("rank %d (%s) was started as one of %d ranks, and rank 0 (%s) as one of %d; all need the same MALT_SIZE",
			rank, comer.who(), hello.Size, here.who(), h.Size)
	case rank >= h.Size:
		mistake = fmt.Sprintf("there is no rank %d (%s) among %d", rank, comer.who(), h.Size)
	case h.seats[rank].card != nil:
		why := fmt.Sprintf("rank %d came twice: %s, and %s; give every rank a number of its own (MALT_RANK), and every job a port of its own", rank, h.seats[rank].who(), comer.who())
		h.strange = why
		h.change()
		return &failure{Rank: rank, Taken: true, Why: why}
	}
	if mistake != "" {
		h.failWith(configError("%s", mistake))
		return &failure{Rank: -1, Why: mistake}
	}
	h.seats[rank] = comer
	h.change()
	return nil
}

// tellEvery is how often who waits hears of news at most, and for how long rank 0
// is occupied with each rank at that.
const (
	tellEvery = 200 * time.Millisecond
	tellOne   = time.Millisecond
)

// tell says who is missing, whenever that changes, and then the last word.
func (h *chair) tell(c *conn) {
	var told []byte
	for {
		news, last, changed := h.latest()
		if last != nil {
			if c.write(last) == nil {
				_ = c.raw.CloseWrite()
			}
			return
		}
		if string(news) != string(told) && c.write(news) != nil {
			return // whoever reads has noticed
		}
		told = news
		pause := time.NewTimer(max(tellEvery, time.Duration(h.Size)*tellOne))
		select {
		case <-pause.C:
			select {
			case <-changed:
			case <-h.over:
			}
		case <-h.over:
		}
		pause.Stop()
	}
}

// latest is what there is to say.
func (h *chair) latest() (news, last []byte, changed chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.news == nil {
		h.news = (&message{Waiting: waitingFor(h.absent(), h.detail())}).encode()
	}
	return h.news, h.last, h.changed
}

// hear reads what a rank says, until it has the table or is gone.
func (h *chair) hear(c *conn, rank int) {
	m, err := receive(c, maxFromRank)
	switch {
	case err == nil && m.Leaving != nil:
		h.lost(rank, "it gave up: %s", m.Leaving.Why)
		_, _ = io.Copy(io.Discard, c.raw) // until it has heard the last word
	case err == nil && m.Got != nil && h.taken(rank):
	case err == nil:
		h.lost(rank, "it said what it must not")
		_, _ = io.Copy(io.Discard, c.raw)
	case errors.Is(err, errMessage):
		h.lost(rank, "it said what it must not: %v", err)
		_, _ = io.Copy(io.Discard, c.raw)
	default:
		h.lost(rank, "its connection has ended, as it does when the process ends: %v", err)
	}
}

// taken has a rank have the table, if there is one.
func (h *chair) taken(rank int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		return false
	}
	h.seats[rank].got = true
	h.change()
	return true
}
