package meeting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
		h.fail(&rdma.PeerError{Rank: int(hello.From), Kind: rdma.Failed, Op: "malt.init", Err: fmt.Errorf("it gave up: %s (at %v)", m.Leaving.Why, c.there())})
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

// refused notes who could not come in, if it tried to. That a rank encrypts, or
// does not, unlike this one, it has proved.
func (h *chair) refused(c *conn, hello *handshake.Hello, err error) {
	var refusal *handshake.Refusal
	switch {
	case !errors.As(err, &refusal):
	case refusal.Verdict == handshake.OtherEncryption:
		does := map[bool]string{true: "encrypts", false: "does not encrypt"}
		h.fail(say.Errorf(rdma.ErrConfig, "rank %d (at %v) %s, and rank 0 (%s) %s", hello.From, c.there(),
			does[h.Encrypt == handshake.Never], h.seats[0].who(), does[h.Encrypt != handshake.Never]).Try("%v", refusal.Verdict))
	default:
		h.note(c, "it says that it is rank %d of %d, and %v", hello.From, hello.Size, refusal)
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
	mistake := ""
	switch {
	case said.Version != h.Version:
		mistake = fmt.Sprintf("the ranks have different versions of MALT\nrank %d (%s): %s; rank 0 (%s): %s\nAll hosts need the same version.",
			rank, comer.who(), said.Version, here.who(), h.Version)
	case int(hello.Size) != h.Size:
		mistake = fmt.Sprintf("the ranks were started with different numbers of ranks\nrank %d (%s): one of %d; rank 0 (%s): one of %d\nAll need the same number of ranks (%s).",
			rank, comer.who(), hello.Size, here.who(), h.Size, theSize)
	case rank >= h.Size:
		mistake = fmt.Sprintf("there is no rank %d (%s) among %d", rank, comer.who(), h.Size)
	case other >= 0:
		there := h.seats[other]
		mistake = fmt.Sprintf("two machines start the same ranks\nrank %d (%s) was started along with %v, and rank %d (%s) along with %v\n"+
			"All machines need the same -n, and each a number of its own (malt run -n, --node-rank).",
			rank, comer.who(), said.Together, other, there.who(), there.card.Together)
	case h.seats[rank].card != nil:
		why := fmt.Sprintf("rank %d came twice\n%s, and %s\n"+
			"Give every rank a number of its own (%s, and the same -n everywhere), and every job a port of its own.", rank, h.seats[rank].who(), comer.who(), theRank)
		h.strange = strings.ReplaceAll(why, "\n", "; ")
		h.change()
		return &failure{Rank: rank, Taken: true, Why: why}
	}
	if mistake != "" {
		h.failWith(say.Unpack(rdma.ErrConfig, mistake))
		return &failure{Rank: -1, Why: mistake}
	}
	h.seats[rank] = comer
	h.change()
	return nil
}
