package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/handshake"
)

// await waits until every link has had a connection.
func (r *rank) await(ctx context.Context) error {
	for _, l := range r.peers {
		select {
		case <-l.up:
		case l := <-r.failed:
			var refused *handshake.Refusal
			if why := l.lastWhy(); errors.As(why, &refused) {
				return fmt.Errorf("rank %d to rank %d: %w", r.cfg.Rank, l.peer, why)
			}
			return &rdma.PeerError{Rank: l.peer, Kind: rdma.Unreachable, Op: "malt.init", Err: errors.New(l.missing())}
		case <-ctx.Done():
			return r.missing(ctx.Err())
		}
	}
	return nil
}

// blocked says what may be in the way.
const blocked = "Both must run on that network (MALT_INTERFACE chooses one), with no firewall between them."

func (l *link) lastWhy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		return errors.New("no message came from it")
	}
	return l.why
}

// missing says which connections could not be made, and why.
func (r *rank) missing(cause error) error {
	var lines []string
	for _, l := range r.peers {
		if l.is(opening) {
			lines = append(lines, l.missing())
		}
	}
	return &say.Error{
		Kind: cause, What: "not all ranks could be connected in time", Where: strings.Join(lines, "; "), Do: blocked, Topic: "firewall",
	}
}

// missing says which connection could not be made, and why.
func (l *link) missing() string {
	c := &l.rank.cfg
	if c.Rank < l.peer && !c.Listening {
		return fmt.Sprintf("rank %d did not connect to rank %d at %s", l.peer, c.Rank, strings.Join(l.rank.wire.Addresses(c.Rank), ", "))
	}
	return fmt.Sprintf("rank %d could not connect to rank %d at %s (%v)", c.Rank, l.peer, strings.Join(l.addresses(), ", "), l.lastWhy())
}
