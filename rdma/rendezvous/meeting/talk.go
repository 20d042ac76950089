package meeting

import (
	"errors"
	"io"
	"time"

	"malt/rdma"
)

// tellEvery is how often who waits hears of news at most, and for how long rank 0
// is occupied with each rank at that.
const (
	tellEvery = 200 * time.Millisecond
	tellOne   = time.Millisecond
)

// keepInformed says who is missing, whenever that changes, and then the last word.
func (h *chair) keepInformed(c *conn) {
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
		h.news = (&message{Waiting: waitingFor(h.absent(), h.detail(), h.advice)}).encode()
	}
	return h.news, h.last, h.changed
}

// hear reads what a rank says, until it has the table or is gone.
func (h *chair) hear(c *conn, rank int) {
	m, err := receive(c, maxFromRank)
	switch {
	case err == nil && m.Leaving != nil:
		h.lost(rank, rdma.Failed, "it gave up: %s", m.Leaving.sentence())
		_, _ = io.Copy(io.Discard, c.raw) // until it has heard the last word
	case err == nil && m.Got != nil && h.taken(rank):
	case err == nil:
		h.lost(rank, rdma.Failed, "it sent a message that is not allowed")
		_, _ = io.Copy(io.Discard, c.raw)
	case errors.Is(err, errMessage):
		h.lost(rank, rdma.Failed, "it sent a message that is not allowed: %v", err)
		_, _ = io.Copy(io.Discard, c.raw)
	default:
		h.lost(rank, rdma.Ended, "its connection has ended, probably because the process ended: %v", err)
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
