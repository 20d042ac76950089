package processes

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"malt/libmalt"
)

// between is what a rank does before each step.
func (x *runner) between(o op) error {
	for until := now() + o.pause; now() < until; {
		runtime.Gosched() // the user's computing
	}
	if d := x.plan.deathOf(x.me()); d != nil && (d.how == "exit" || d.how == "abort") && x.page.at(x.me(), scatters).Load() >= int64(d.after.value) {
		x.die(d.how)
	}
	if x.noise != nil && x.rnd.IntN(4) == 0 {
		if err := x.noise.use(x.me()); err != nil {
			return fmt.Errorf("second vector: %w", err)
		}
	}
	return nil
}

// do is one step of the plan.
func (x *runner) do(o op) error {
	if err := x.between(o); err != nil {
		return err
	}
	switch o.kind {
	case scatter:
		if err := x.call(scattering, "scatter", func(ctx context.Context) error { return x.obj.send(ctx, o.to) }); err != nil {
			return err
		}
		x.page.at(x.me(), scatters).Add(1)
		x.tally.add("scatters "+x.obs.mode.String(), 1)
		return nil
	case look, lookTwice:
		return x.look(o.kind == lookTwice)
	}
	return x.fold(o.kind)
}

// look gathers and reads what comes; twice: gives it back first and gathers
// again.
func (x *runner) look(twice bool) error {
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
		x.gathered(len(us))
		own := x.obj.s.Clock()
		if err := x.obs.check(own, us, x.obj.read); err != nil {
			return errors.Join(err, x.obj.s.End(true))
		}
		if x.rnd.IntN(8) == 0 { // G3: until End they stay as they are
			runtime.Gosched()
			for _, u := range us {
				if err := checkPayload(u, x.obj.read); err != nil {
					return errors.Join(fmt.Errorf("read again: %w", err), x.obj.s.End(true))
				}
			}
		}
		for _, u := range us {
			if err := x.checkHeader(u); err != nil {
				return errors.Join(err, x.obj.s.End(true))
			}
		}
		return x.obj.s.End(true)
	}
}

// checkHeader compares what travels beside the payload.
func (x *runner) checkHeader(u libmalt.Update) error {
	if x.obj.segment() {
		if want := x.obj.length(u.Rank, u.Clock); len(u.Data) != want {
			return fmt.Errorf("update of rank %d clock %d has %d bytes, expected %d", u.Rank, u.Clock, len(u.Data), want)
		}
	} else if want := weight(u.Rank, u.Clock); u.Weight != want {
		return fmt.Errorf("update of rank %d clock %d has weight %v, expected %v", u.Rank, u.Clock, u.Weight, want)
	}
	return nil
}

func (x *runner) gathered(n int) {
	x.page.at(x.me(), gathers).Add(1)
	x.tally.add("gathers "+x.obs.mode.String(), 1)
	x.tally.add("folded "+x.obs.mode.String(), n)
}

// fold gathers with one of the library's folds. A segment has none.
func (x *runner) fold(kind opKind) error {
	if x.obj.segment() {
		if kind == syncAll {
			if err := x.do(op{kind: scatter}); err != nil {
				return err
			}
		}
		return x.look(false)
	}
	var n int
	if kind == syncAll {
		var err error
		if n, err = x.sync(); err != nil {
			return err
		}
	} else {
		own := x.obj.s.Clock()
		x.obj.fill(value(x.me(), own)) // an earlier fold may have changed it
		name := map[opKind]string{foldSum: "sum", foldMax: "max", foldReplace: "replace", foldMean: "mean"}[kind]
		if err := x.call(gathering, "gather", func(ctx context.Context) (err error) {
			n, err = x.obj.v.Gather(ctx, name)
			return err
		}); err != nil {
			return err
		}
	}
	x.gathered(n)
	got, ok, err := x.obj.read(x.obj.s.Bytes())
	if err != nil {
		return fmt.Errorf("G3: after a fold: %w", err)
	}
	if !ok {
		got = value(x.me(), x.obj.s.Clock())
		kind = foldMean
	}
	if err := x.obs.checkFold(kind, x.obj.s.Clock(), n, got); err != nil || kind != syncAll && kind != foldMean {
		return err
	}
	return x.checkMean(x.obj.s.Clock())
}

// sync may be given up on its way. Then a gather takes its place if its scatter
// is through, else a new sync.
func (x *runner) sync() (n int, err error) {
	me, clock := x.me(), x.obj.s.Clock()+1
	x.obj.fill(value(me, clock))
	lockstep, seen, gather := x.obs.inLockstep(x.obs.base, clock), x.givenUp, false
	if err := x.call(gathering, "sync", func(ctx context.Context) (err error) {
		if x.givenUp > seen {
			seen, gather = x.givenUp, x.obj.s.Clock() == clock
			x.tally.add("syncs given up", 1)
		}
		if gather {
			n, err = x.obj.v.Gather(ctx, "")
		} else {
			n, err = x.obj.v.Sync(ctx, weight(me, clock))
		}
		return err
	}); err != nil {
		return 0, err
	}
	x.page.at(me, scatters).Add(1)
	x.tally.add("scatters "+x.obs.mode.String(), 1)
	if lockstep {
		x.tally.add("syncs in place, unless given up", 1)
	}
	return n, nil
}

// checkMean holds what a mean has given against its operands, bit for bit and in
// every array, where they are known. So all ranks have got the same. Several hosts
// add up in an order of their own, which float32 rounds otherwise.
func (x *runner) checkMean(own uint64) error {
	clock, senders, exact := x.obs.expected(own)
	if !exact || len(senders) == 0 {
		return nil
	}
	for i, a := range x.obj.arrays {
		got, some, err := constant(x.obj.v.Array(i), a.DType.Size())
		if want := x.obs.mean(a.DType, own, senders, clock); err != nil || some && !x.plan.agree(got, want) {
			return fmt.Errorf("the mean at clock %d with ranks %v is %v in array %d (%v), expected %v", own, senders, got, i, err, want)
		}
	}
	return nil
}

// checkVector fails unless the vector holds x everywhere.
func (x *runner) checkVector(want float64) error {
	got, ok, err := x.obj.read(x.obj.s.Bytes())
	if err != nil || ok && got != want {
		return fmt.Errorf("the vector holds %s (%v), expected %s", decoded(got), err, decoded(want))
	}
	return nil
}
