package meeting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/handshake"
)

// greet is all that happens over one connection.
func (h *chair) greet(meeting context.Context, c *conn, visit handshake.Visit) {
	defer c.Close()
	secure, hello, err := h.self.Greet(c.raw, h.Encrypt, visit, permit)
	if err != nil {
		h.refused(c, hello, err)
		return
	}
	c.Conn = secure
	_ = c.SetDeadline(time.Now().Add(cardPatience))
	stop := context.AfterFunc(meeting, func() { _ = c.SetDeadline(time.Now().Add(farewell)) })
	m, err := receive(c, maxFromRank)
	stop()
	if err != nil || c.SetDeadline(time.Time{}) != nil {
		return // it has come by another way, or has ended
	}
	if m.Leaving != nil {
		h.fail(&rdma.PeerError{Rank: int(hello.From), Kind: rdma.Failed, Op: "malt.init", Err: fmt.Errorf("it gave up: %s (at %v)", m.Leaving.sentence(), c.there())})
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
		h.keepInformed(c)
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

// refused notes who could not come in, if it tried to. That a rank encrypts, or
// does not, unlike this one, it has proved.
func (h *chair) refused(c *conn, hello *handshake.Hello, err error) {
	var refusal *handshake.Refusal
	switch {
	case !errors.As(err, &refusal):
	case refusal.Verdict == handshake.OtherEncryption:
		does := map[bool]string{true: "encrypts", false: "does not encrypt"}
		h.fail(say.Errorf(rdma.ErrConfig, "rank %d (at %v) %s, and rank 0 (%s) %s", hello.From, c.there(),
			does[h.Encrypt == handshake.Never], h.seats[0].who(), does[h.Encrypt != handshake.Never]).Try("%s", refusal.Advice()))
	default:
		h.note(fmt.Sprintf("%v was refused: it says that it is rank %d of %d, and %v", c.RemoteAddr(), hello.From, hello.Size, refusal), refusal.Advice())
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
	other := slices.IndexFunc(h.seats, func(s seat) bool { return s.card != nil && s.card.Together.against(said.Together) })
	var mistake *say.Error
	switch {
	case said.Version != h.Version:
		mistake = say.Errorf(rdma.ErrConfig, "the ranks have different versions of MALT").
			At("rank %d (%s): %s; rank 0 (%s): %s", rank, comer.who(), said.Version, here.who(), h.Version).
			Try("All hosts need the same version.")
	case int(hello.Size) != h.Size:
		mistake = say.Errorf(rdma.ErrConfig, "the ranks were started with different numbers of ranks").
			At("rank %d (%s): one of %d; rank 0 (%s): one of %d", rank, comer.who(), hello.Size, here.who(), h.Size).
			Try("All ranks need the same number of ranks (%s).", theSize)
	case rank >= h.Size:
		mistake = say.Errorf(rdma.ErrConfig, "rank %d does not exist among %d ranks", rank, h.Size).At("it is %s", comer.who()).
			Try("Ranks are numbered from 0 (%s).", theRank)
	case other >= 0:
		there := h.seats[other]
		mistake = say.Errorf(rdma.ErrConfig, "two machines started the same ranks").
			At("rank %d (%s) was started along with %v, and rank %d (%s) along with %v", rank, comer.who(), said.Together, other, there.who(), there.card.Together).
			Try("All machines need the same -n, and each its own number (malt run -n, --node-rank).")
	case h.seats[rank].card != nil:
		why := reasonOf(say.Errorf(nil, "two processes joined as rank %d", rank).At("%s, and %s", h.seats[rank].who(), comer.who()).
			Try("Give every rank its own number (%s, and the same -n everywhere), and every job its own port.", theRank))
		h.strange, h.advice = why.sentence(), why.Do
		h.change()
		return &failure{Rank: rank, Taken: true, reason: why}
	}
	if mistake != nil {
		h.failWith(mistake)
		return failureOf(mistake)
	}
	h.seats[rank] = comer
	h.change()
	return nil
}
