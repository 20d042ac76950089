package processes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"malt/libmalt"
	"malt/rdma"
)

// survivor is a runner in a job that goes on when ranks die. It notes what it does and
// sees; judgeSurvivors looks through the notes of all ranks, the dead ones included.
type survivor struct {
	*runner
	ph     *planPhase
	log    *logbook
	shared bool     // the ranks' arrays lie in memory of all
	models [][]byte // by sender: its model, as far as this rank has read it
}

func newSurvivor(x *runner) *survivor {
	s := &survivor{runner: x, log: x.page.book(x.me(), x.plan.ranks)}
	for range x.plan.ranks {
		s.models = append(s.models, make([]byte, x.plan.object.size()))
	}
	return s
}

// follow carries out the plan.
func (x *survivor) follow() error {
	x.ph = &x.plan.phases[0]
	if err := x.make(); err != nil {
		return err
	}
	x.shared = x.plain() && shared(x.obj.s.Bytes())
	if x.plan.noise {
		if err := x.called(collective{kind: configure}, func(*event) error { return x.makeNoise() }); err != nil {
			return err
		}
	}
	for i := range x.plan.phases {
		x.phase, x.ph = i, &x.plan.phases[i]
		x.set(phase, i+1)
		for _, o := range x.ph.ops[x.me()] {
			if err := x.do(o); err != nil {
				return fmt.Errorf("phase %d, %s: %w", i+1, x.ph.mode, err)
			}
		}
		for _, c := range x.ph.then {
			if err := x.meet(c, &x.plan.phases[min(i+1, len(x.plan.phases)-1)]); err != nil {
				return fmt.Errorf("end of phase %d: %w", i+1, err)
			}
		}
		if x.plan.weather != nil {
			e := x.note(event{Kind: confirmed})
			if err := x.call(collecting, "confirm", x.w.Confirm); err != nil {
				return fmt.Errorf("end of phase %d: %w", i+1, err)
			}
			x.end(e)
		}
	}
	if x.plan.end == shut {
		x.note(event{Kind: done}).end()
		x.closed = true
		if err := x.obj.s.Close(); err != nil {
			return err
		}
		if err := x.meet(collective{kind: barrier}, nil); err != nil {
			return err
		}
	}
	x.note(event{Kind: done}).end()
	return nil
}

// note begins an event.
func (x *survivor) note(e event) *event {
	e.Phase, e.Seen, e.InPlace = int64(x.phase+1), x.w.Generation(), e.InPlace || x.shared
	if x.obj != nil && !x.closed {
		e.Before = x.obj.s.Clock()
	}
	return x.log.begin(e)
}

// end completes an event. Whom a scatter was for is known if the view has not changed.
func (x *survivor) end(e *event) {
	e.Generation, e.Members = x.w.Generation(), setOf(x.w.Alive())
	x.page.at(x.me(), members).Store(int64(e.Members))
	if x.obj != nil && !x.closed {
		if e.Kind != scattered && e.Kind != synced {
			e.Clock = x.obj.s.Clock()
		} else {
			e.Exact = e.Exact || e.Generation == e.Seen
		}
	}
	e.end()
}

// plain tells whether the object is a vector that is not sparse: it can be folded.
func (x *survivor) plain() bool { return !x.plan.object.segment() && x.plan.object.sparse == "" }

// do is one step of the plan.
func (x *survivor) do(o op) error {
	if err := x.between(o); err != nil {
		return err
	}
	if err := x.killInside(); err != nil {
		return err
	}
	switch {
	case o.kind == scatter:
		return x.scatter(o.to != nil)
	case x.plain() && o.kind == syncAll:
		return x.sync()
	case x.plain() && o.kind != look && o.kind != lookTwice:
		return x.fold(o.kind)
	case o.kind == syncAll:
		if err := x.scatter(false); err != nil {
			return err
		}
	}
	return x.look(o.kind == lookTwice)
}

// scatter sends the object's next values, to some of the receivers perhaps.
func (x *survivor) scatter(some bool) error {
	for {
		clock := x.obj.s.Clock() + 1
		x.prepare(clock)
		var to []int
		alive := x.w.Alive()
		if some && x.rnd.IntN(2) == 0 {
			to = []int{}
			for _, r := range x.obj.s.Receivers() {
				if x.rnd.IntN(2) == 0 {
					to = append(to, r)
				}
			}
		}
		e := x.note(x.sending(scattered, clock, to))
		err := x.call(scattering, "scatter", func(ctx context.Context) (err error) {
			if x.obj.segment() {
				_, err = x.obj.seg.Scatter(ctx, x.obj.length(x.me(), clock), to)
			} else {
				_, err = x.obj.v.Scatter(ctx, to, weight(x.me(), clock))
			}
			return err
		})
		var dead *rdma.PeerError
		gone := errors.As(err, &dead) && slices.Contains(to, dead.Rank) && x.leftOut(dead.Rank)
		repaired := errors.Is(err, libmalt.ErrInvalid) && !slices.Equal(x.w.Alive(), alive) // others receive now
		if to != nil && (gone || repaired) {
			e.Kind = void // as is said of a scatter to a rank that is dead
			x.end(e)
			x.tally.add("scatters refused for a dead receiver", 1)
			continue
		}
		if err != nil {
			return err
		}
		x.end(e)
		x.page.at(x.me(), scatters).Add(1)
		x.tally.add("scatters "+x.ph.mode.String(), 1)
		return nil
	}
}

func (x *survivor) fell(rank int) bool { return x.page.at(rank, died).Load() != 0 }

// leftOut tells whether the job goes on without a rank that fell.
func (x *survivor) leftOut(rank int) bool {
	return (x.fell(rank) || x.plan.mayLive(rank)) && !slices.Contains(x.w.Alive(), rank)
}

// sending is the event of a scatter of the object's present values.
func (x *survivor) sending(kind eventKind, clock uint64, to []int) event {
	b := x.obj.s.Bytes()
	if x.obj.segment() {
		b = b[:x.obj.length(x.me(), clock)]
	}
	e := event{Kind: kind, Clock: clock, Sum: sum(b), To: setOf(to), Exact: to != nil, Named: to != nil}
	if to == nil {
		e.To = setOf(x.obj.s.Receivers())
		e.Exact = x.ph.graph.String() == "all"
	}
	return e
}

// prepare gives the object the values of the scatter at clock: of a vector in rows, some of
// the rows, each so rarely that one which a new reader has not got is missed for long.
func (x *survivor) prepare(clock uint64) {
	o := x.plan.object
	if o.sparse == "" {
		x.obj.fill(value(x.me(), clock))
		return
	}
	b, size := x.obj.s.Bytes(), o.arrays[0].Row*o.arrays[0].DType.Size()
	if o.sparse == "gradient" {
		clear(b)
	}
	for row := range len(b) / size {
		if (uint64(row)+clock)%11 == 0 {
			fill(b[row*size:(row+1)*size], o.arrays[0].DType.Size(), value(x.me(), clock))
		}
	}
}

// look gathers, and notes what comes; twice: gives it back first and gathers again.
func (x *survivor) look(twice bool) error {
	e := x.note(event{Kind: looked, Op: int64(look)})
	for {
		var us []libmalt.Update
		if err := x.call(gathering, "gather", func(ctx context.Context) (err error) {
			us, err = x.obj.s.Begin(ctx)
			return err
		}); err != nil {
			return err
		}
		if twice {
			twice = false
			if err := x.obj.s.End(false); err != nil {
				return err
			}
			continue
		}
		x.page.at(x.me(), gathers).Add(1)
		x.tally.add("gathers "+x.ph.mode.String(), 1)
		x.tally.add("folded "+x.ph.mode.String(), len(us))
		e.Count = int64(len(us))
		err := x.read(e, us)
		if err = errors.Join(err, x.obj.s.End(true)); err == nil {
			x.end(e)
		}
		return err
	}
}

// read notes the updates in e.
func (x *survivor) read(e *event, us []libmalt.Update) error {
	for i, u := range us {
		if e.Folded[u.Rank] != 0 {
			return fmt.Errorf("G2: a gather gives clocks %d and %d of rank %d", e.Folded[u.Rank], u.Clock, u.Rank)
		}
		if err := x.checkHeader(u); err != nil && x.plan.object.sparse == "" {
			return err
		}
		if own := x.obj.s.Clock(); u.Age != int64(own)-int64(u.Clock) {
			return fmt.Errorf("clock %d of rank %d at clock %d has age %d", u.Clock, u.Rank, own, u.Age)
		}
		b := u.Data
		if x.plan.object.sparse != "" {
			var err error
			if b, err = x.whole(i, u); err != nil {
				return err
			}
		}
		e.Folded[u.Rank], e.Sums[u.Rank] = u.Clock, sum(b)
		if x.rnd.IntN(8) == 0 && x.plan.object.sparse == "" { // G3: until End they stay as they are
			if again := sum(u.Data); again != e.Sums[u.Rank] {
				return fmt.Errorf("G3: clock %d of rank %d has changed while it was read", u.Clock, u.Rank)
			}
		}
	}
	return nil
}

// whole is a sparse update laid out as its sender's vector. A model is put together from
// all updates: one that lacks a row which the sender thinks was read shows here.
func (x *survivor) whole(i int, u libmalt.Update) ([]byte, error) {
	b, err := x.obj.v.Whole(i)
	if err != nil || x.plan.object.sparse == "gradient" {
		return b, err
	}
	model, row := x.models[u.Rank], x.obj.v.Row()
	if u.Rows == nil {
		copy(model, b)
	}
	for _, r := range u.Rows {
		copy(model[int(r)*row:(int(r)+1)*row], b[int(r)*row:])
	}
	return model, nil
}
