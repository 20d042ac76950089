package meeting

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

const jobBytes = 16

func newJob() string {
	b := make([]byte, jobBytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// party is what a rank brings to a meeting.
type party struct {
	Config
	places []place
	chosen choice
	inside bool // the store is of this host only
	own    []address
	card   card

	reported *Progress // last
}

// Meet returns when all ranks are there: the table, and what this rank listens
// with. It fails as the package's comment says, and when ctx ends, with an error
// that wraps ctx's and names what was waited for.
func Meet(ctx context.Context, c Config) (*Table, []net.Listener, error) {
	t, ls, err := meet(ctx, c)
	track(ls, false)
	if err != nil {
		for _, l := range ls {
			l.Close()
		}
		return nil, nil, err
	}
	return t, ls, nil
}

func meet(ctx context.Context, c Config) (*Table, []net.Listener, error) {
	places, chosen, err := c.check()
	if err != nil {
		return nil, nil, err
	}
	p := &party{Config: c, places: places, chosen: chosen}
	p.inside = !slices.ContainsFunc(places, func(p place) bool { return !p.loopback() })
	if p.own, err = ownAddresses(); err != nil {
		return nil, nil, err
	}
	name := hostName()
	p.card = card{Version: c.Version, Name: name, Pid: os.Getpid()}
	if p.card.Together, err = parseTogether(c.Together, c.Rank); err != nil {
		return nil, nil, err
	}
	p.card.Host, p.card.Network = identify(name, c.Alone)
	if c.Host != "" && !c.Alone {
		p.card.Host = c.Host
	}
	if c.Rank == 0 {
		return preside(ctx, p)
	}
	return attend(ctx, p)
}

// report tells the caller what is new.
func (p *party) report(absent []int, detail, do string) {
	if p.Report == nil || p.reported != nil && detail == p.reported.Detail && slices.Equal(absent, p.reported.Absent) {
		return
	}
	p.reported = &Progress{absent, detail, do}
	p.Report(*p.reported)
}

// listen makes this rank's listeners and enters them in its card. met are the
// addresses by which it is known that this host can be reached.
func (p *party) listen(met ...netip.Addr) ([]net.Listener, error) {
	chosen, err := candidates(p.own, met, p.inside, p.chosen)
	if err != nil {
		return nil, err
	}
	ls, at, err := listen(chosen)
	track(ls, true)
	p.card.Addresses = at
	return ls, err
}

// waited is the error of a rank that has waited in vain. detail is what stood in the
// way, and do what to do about that.
func (p *party) waited(absent []int, detail, do string, cause error) error {
	e := &say.Error{Kind: cause, What: "the ranks did not meet in time", Topic: "firewall"}
	e.Where = fmt.Sprintf("rank %d at %s waited for all ranks to learn that all had arrived", p.Rank, p.Store)
	if len(absent) > 0 {
		e.Where = fmt.Sprintf("rank %d at %s waited for %s of %d", p.Rank, p.Store, say.Ranks(absent), p.Size)
		e.Do = cmp.Or(do, ToCome)
	}
	e.Where = joined(e.Where, detail)
	return e
}

// track has forked children close listeners, or not any more: then somebody else
// cares.
func track(ls []net.Listener, enter bool) {
	for _, l := range ls {
		mem.TrackSocket(l, enter)
	}
}

// failureOf is what rank 0 tells the others when err ends the meeting.
func failureOf(err error) *failure {
	var dead *rdma.PeerError
	switch {
	case errors.As(err, &dead):
		return &failure{Rank: dead.Rank, Kind: dead.Kind, reason: reason{Why: dead.Err.Error()}}
	case errors.Is(err, rdma.ErrConfig):
		return &failure{Rank: -1, reason: reasonOf(err)}
	}
	why := reasonOf(err)
	return &failure{Rank: 0, Kind: rdma.Failed, reason: reason{Why: "it gave up: " + why.sentence()}}
}

// error is a failure as this rank has it.
func (f *failure) error() error {
	switch {
	case f.Taken:
		return f.reason.error(rdma.ErrRankTaken)
	case f.Rank >= 0:
		return &rdma.PeerError{Rank: f.Rank, Kind: f.Kind, Op: "malt.init", Err: errors.New(f.Why)}
	}
	return f.reason.error(rdma.ErrConfig)
}
