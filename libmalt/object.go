package libmalt

import (
	"context"
	"strings"
	"sync/atomic"

	"malt/graphs"
	"malt/internal/say"
	"malt/libmalt/boxes"
	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// Object is what a rank scatters to the receivers of a graph, and the updates that come
// from its senders. Its calls serve one goroutine at a time; a second one, or a call from
// inside a fold, gets ErrBusy. Vector and Segment are its faces.
type Object struct {
	core.Member

	way  way
	w    *World
	kind takers
	mode atomic.Pointer[mode] // a new one under the gate; nobody changes one that is here
}

// way is how an object travels: through boxes, or by an engine.
type way interface {
	core.Body
	// Memory is the mapping that begins with the object's; nil: it needs none.
	Memory() []byte
	// Publish makes what the others read, in that mode; it does not wait. Join connects
	// this rank with theirs, and blocks. Then all Use it, the ranks of the view in
	// which they have joined; or Abandon it, and the object if it is new.
	Publish(m boxes.Mode, about string) error
	Join(ctx context.Context) error
	Use(view rdma.View)
	Abandon()
	// Settled says that all ranks have the present values; with summed, that they have the
	// sum of what those ranks Share, since the same call, as of an engine.
	Settled(summed []int)
	Share(weight float64) (data []byte, since uint64)
	// Inherit is as of an engine.
	Inherit(among []int) error

	Send(ctx context.Context, bytes int, rows []int64, to []int, weight float64) (int, error)
	Gather(ctx context.Context, fold reduce.Op) (int, error)
	Await(ctx context.Context) error
	Sync(ctx context.Context, rows []int64, weight float64, slack int, fold reduce.Op) (int, error)
	AllReduce(c core.Call, op reduce.Op) core.Stepper // nil: by messages

	// Begin, Whole and End are for folds of the user's.
	Begin(ctx context.Context) ([]Update, error)
	Whole(i int) ([]byte, error)
	End(folded bool) error

	Row() int // bytes of a row; 0 without rows
	Age() uint64
	CountLost() // brings what is overwritten up to date
}

// Update is one received payload.
type Update = codec.Update

// World is the job that the object belongs to.
func (o *Object) World() *World { return o.w }

// Bytes is the memory that Scatter sends from, writable, valid until Unmap.
func (o *Object) Bytes() []byte { return o.Data }

// Await waits until an update has come that no gather has folded, until none can come since all
// senders have ended, have closed o or are in a collective call, or until the time of ctx is up,
// which is not an error. In ssp and async: other gathers wait for what they fold.
func (o *Object) Await(ctx context.Context) error { return o.way.Await(ctx) }

// Begin waits as the consistency says and returns the updates to fold, in the order of
// ranks; of a sparse vector rows and their values, of which Whole shows one laid out as the
// vector. Until End no other call on o is let in. An error needs no End.
func (o *Object) Begin(ctx context.Context) ([]Update, error) { return o.way.Begin(ctx) }

// End ends what Begin began. With folded the updates count as seen and, in
// notify-ack, are acknowledged: after the fold, since the sender reuses their
// memory. Without, the next gather gets them again.
func (o *Object) End(folded bool) error { return o.way.End(folded) }

// Stats is a copy of the counts so far.
func (o *Object) Stats() (Stats, error) {
	if err := o.Gate.Enter(o); err != nil {
		return Stats{}, err
	}
	defer o.Free()
	if o.Open {
		o.way.CountLost()
	}
	return o.Counts.Copy(), nil
}

// Describe is the options in force, in the grammar of NewVector.
func (o *Object) Describe() string {
	m := o.mode.Load()
	text := "name=" + o.Name + " " + m.agreed()
	if o.kind == newVector && !m.fold.Changes() && !m.keyed {
		text += " fold=" + m.fold.String()
	}
	return text
}

// Lockstep tells whether each gather folds what was sent with this rank's last
// scatter.
func (o *Object) Lockstep() bool { return o.mode.Load().Rule.Boxes() == rdma.ByClock }

// Receivers are the ranks that the next scatter goes to, in the graph's order.
func (o *Object) Receivers() []int { return o.graph().Receivers(o.Job.Rank, o.Clock()+1) }

// Senders are the ranks that send to this one at the present clock, at clock 0
// at the first.
func (o *Object) Senders() []int { return o.graph().Senders(o.Job.Rank, max(o.Clock(), 1)) }

// graph is that of the ranks that take part.
func (o *Object) graph() *graphs.Graph { return o.mode.Load().Graph.Among(o.Job.View().Ranks) }

// maxName is how many bytes a name has at most.
const maxName = 200

// checkName accepts what can travel in options and messages without quoting.
func checkName(name string) error {
	if len(name) > maxName {
		return say.Errorf(ErrInvalid, "name %.20q… has %d bytes; the limit is %d", name, len(name), maxName)
	}
	for _, r := range name {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/", r) {
			return say.Errorf(ErrInvalid, "name %.40q: %q is not allowed", name, r).Try("Use letters, digits and ._-/ only.")
		}
	}
	return nil
}
