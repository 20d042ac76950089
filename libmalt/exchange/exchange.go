package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"malt/rdma"
)

// ErrDiffers says that ranks do not exchange the same: their stamps have different
// kinds.
var ErrDiffers = errors.New("the ranks exchange different arrays")

// Part is what a host has of some bytes.
type Part struct {
	Data  []byte // nil: of this rank's own host
	Stamp rdma.Stamp
}

// Work is what is exchanged.
type Work interface {
	// Part writes what this rank's host has of the bytes at off to dst.
	Part(dst []byte, off int)
	// Merge adds up what the hosts have of the bytes at off, in their order, and
	// writes the sum to dst. weight is the same for all bytes; it comes back from
	// Each, on all ranks.
	Merge(dst []byte, off int, parts []Part) (weight float64, err error)
}

// Exchange is one rank's boxes for a plan, and how far it is with them. One
// goroutine at a time uses it.
type Exchange struct {
	t      rdma.Transport
	rank   int
	host   int
	plan   Plan
	name   string
	number uint64
	stamp  rdma.Stamp
	own    []*owned
	others []*other
	parts  []Part

	// Where values travel in fewer bytes (narrow.go):
	relative bool     // they are differences from the result of exchange based
	based    uint64   // 0: from zeros
	room     []byte   // for values of a chunk
	rooms    [][]byte // by host: for what it has sent of a chunk
}

// owned is a segment that this rank adds up.
type owned struct {
	Segment
	id   int
	from []source // by host, its own is unused
	sums []sum
	at   int     // bytes added up
	sent int     // sums
	has  float64 // weight of the sum
	narrowed
}

// sum is of some bytes of a segment, and is sent when it is whole.
type sum struct {
	span
	out  rdma.Outbox
	data []byte // in the outbox; until the first chunk that of the exchange before
}

// source is another host's part of a segment.
type source struct {
	inbox rdma.Inbox
	held  rdma.Update // not added up yet, if has
	has   bool
}

// other is a segment that a rank on another host adds up.
type other struct {
	Segment
	id   int
	out  rdma.Outbox
	at   int // bytes sent
	sums []received
	narrowed
}

// received is a sum of another rank.
type received struct {
	span
	inbox rdma.Inbox
	last  rdma.Update // that came
}

// New makes the exchange of a plan without boxes, which Send and Receive put in.
func New(p Plan, rank int) *Exchange {
	x := &Exchange{rank: rank, plan: p, parts: make([]Part, len(p.Hosts))}
	for h, ranks := range p.Hosts {
		for _, r := range ranks {
			if r == rank {
				x.host = h
			}
		}
	}
	// Beginning with the share behind the own one: not all send to the same host.
	for i := range p.Hosts {
		share := (x.host + i) % len(p.Hosts)
		for id, s := range p.Segments {
			switch {
			case s.Host != share || s.By[x.host] != rank:
			case share == x.host:
				o := &owned{Segment: s, id: id, from: make([]source, len(p.Hosts))}
				for _, c := range s.sums() {
					o.sums = append(o.sums, sum{span: c})
				}
				o.narrowed = x.narrow(s)
				x.own = append(x.own, o)
			default:
				o := &other{Segment: s, id: id}
				for _, c := range s.sums() {
					o.sums = append(o.sums, received{span: c})
				}
				o.narrowed = x.narrow(s)
				x.others = append(x.others, o)
			}
		}
	}
	return x
}

// Publish makes this rank's boxes, under names that begin with name. It does not
// wait.
func Publish(ctx context.Context, t rdma.Transport, name string, p Plan, rank int) (*Exchange, error) {
	x := New(p, rank)
	x.t, x.name = t, name
	err := x.Send(func(box string, spec rdma.Spec, readers []int) (rdma.Outbox, error) {
		return t.Publish(ctx, x.name+box, spec, readers)
	})
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// partBox and sumBox name boxes of a segment.
func partBox(id int) string        { return fmt.Sprintf("/part/%d", id) }
func sumBox(id int, c span) string { return fmt.Sprintf("/sum/%d/%d", id, c.lo) }

func (p Plan) sumSpec(c span) rdma.Spec {
	return rdma.Spec{Bytes: p.Sent(c.hi - c.lo), About: "sum"}
}

// partSpec is that of a queue, or where a part is a single chunk, of a box without
// acks: who sends the next has seen, by the sum, that this one was added up.
func (p Plan) partSpec(s Segment) rdma.Spec {
	spec := rdma.Spec{Bytes: p.Format.Bytes(min(s.Hi-s.Lo, chunkBytes)), About: "part"}
	if s.Hi-s.Lo > chunkBytes {
		spec.Mode = rdma.Queue(chunkDepth)
	}
	return spec
}

// elsewhere are the handlers of s on other hosts than the owner's.
func (s Segment) elsewhere() (ranks []int) {
	for h, r := range s.By {
		if h != s.Host {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// Send makes the boxes that this rank sends through, each of which has a name.
func (x *Exchange) Send(publish func(box string, spec rdma.Spec, readers []int) (rdma.Outbox, error)) (err error) {
	for _, o := range x.own {
		for i := range o.sums {
			s := &o.sums[i]
			if s.out, err = publish(sumBox(o.id, s.span), x.plan.sumSpec(s.span), o.elsewhere()); err != nil {
				return err
			}
		}
	}
	for _, o := range x.others {
		if o.out, err = publish(partBox(o.id), x.plan.partSpec(o.Segment), []int{o.Owner()}); err != nil {
			return err
		}
	}
	return nil
}

// Join waits until the others have published theirs. It may be called again after an error.
func (x *Exchange) Join(ctx context.Context) error {
	return x.Receive(func(box string, spec rdma.Spec, senders []int) ([]rdma.Inbox, error) {
		return x.t.Subscribe(ctx, x.name+box, spec, senders)
	})
}

// Receive connects it with those of other ranks.
func (x *Exchange) Receive(subscribe func(box string, spec rdma.Spec, senders []int) ([]rdma.Inbox, error)) error {
	for _, o := range x.own {
		if slices.ContainsFunc(o.from, func(s source) bool { return s.inbox != nil }) {
			continue // by an earlier call, which has failed
		}
		ins, err := subscribe(partBox(o.id), x.plan.partSpec(o.Segment), o.elsewhere())
		if err != nil {
			return err
		}
		for _, in := range ins {
			for h, r := range o.By {
				if r == in.From() {
					o.from[h].inbox = in
				}
			}
		}
	}
	for _, o := range x.others {
		for i := range o.sums {
			s := &o.sums[i]
			if s.inbox != nil {
				continue
			}
			ins, err := subscribe(sumBox(o.id, s.span), x.plan.sumSpec(s.span), []int{o.Owner()})
			if err != nil {
				return err
			}
			s.inbox = ins[0]
		}
	}
	return nil
}

// Close leaves: what this rank has sent can still be had.
func (x *Exchange) Close() error {
	var errs []error
	for _, o := range x.own {
		for _, s := range o.from {
			if s.inbox != nil {
				errs = append(errs, s.inbox.Close())
			}
		}
		for _, s := range o.sums {
			if s.out != nil {
				errs = append(errs, s.out.Close())
			}
		}
	}
	for _, o := range x.others {
		for _, s := range o.sums {
			if s.inbox != nil {
				errs = append(errs, s.inbox.Close())
			}
		}
		if o.out != nil {
			errs = append(errs, o.out.Close())
		}
	}
	return errors.Join(errs...)
}

// Begin begins exchange number, or goes on with it. stamp goes with every part;
// its Kind must be the same on all ranks. If the sum is a mean, values that travel in fewer bytes
// are differences: its Age is over how many ranks the part is a sum; 0: it is a mean itself.
func (x *Exchange) Begin(number uint64, stamp rdma.Stamp, mean bool) {
	if number == x.number {
		return
	}
	x.base(mean)
	stamp.Clock = number
	x.number, x.stamp = number, stamp
	for _, o := range x.own {
		o.at, o.sent = 0, 0
	}
	for _, o := range x.others {
		o.at = 0
	}
}

// Finished tells whether this rank has sent all that others need of it.
func (x *Exchange) Finished() bool {
	for _, o := range x.own {
		if o.sent < len(o.sums) {
			return false
		}
	}
	for _, o := range x.others {
		if o.at < o.Hi-o.Lo {
			return false
		}
	}
	return true
}

// Complete tells whether all sums that this rank handles are here.
func (x *Exchange) Complete() bool {
	for _, o := range x.others {
		for i := range o.sums {
			if o.sums[i].last.Clock != x.number {
				return false
			}
		}
	}
	return x.Finished()
}

// Each calls f with every sum, once it is Complete. The bytes are valid until a sum of the
// exchange after this one is: then all ranks of all hosts have begun that one.
func (x *Exchange) Each(f func(off int, sum []byte, weight float64)) {
	for _, o := range x.own {
		for _, s := range o.sums {
			f(o.Lo+s.lo, o.sum(s.span, s.data), o.has)
		}
	}
	for _, o := range x.others {
		for _, s := range o.sums {
			f(o.Lo+s.lo, o.sum(s.span, s.last.Data), s.last.Weight)
		}
	}
}
