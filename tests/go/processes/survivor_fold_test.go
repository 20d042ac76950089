package processes

import (
	"context"

	"malt/libmalt"
)

// held is what the vector holds.
func (x *survivor) holds() result {
	var arrays [][]byte
	var types []libmalt.DType
	for i, a := range x.obj.arrays {
		arrays, types = append(arrays, x.obj.v.Array(i)), append(types, a.DType)
	}
	return resultOf(arrays, types)
}

// fold gathers with one of the library's folds.
func (x *survivor) fold(kind opKind) error {
	name := map[opKind]string{foldSum: "sum", foldMax: "max", foldReplace: "replace", foldMean: "mean"}[kind]
	x.obj.fill(value(x.me(), x.obj.s.Clock())) // an earlier fold may have changed it
	e := x.note(event{Kind: folded, Op: int64(kind)})
	var n int
	if err := x.call(gathering, "gather", func(ctx context.Context) (err error) {
		n, err = x.obj.v.Gather(ctx, name)
		return err
	}); err != nil {
		return err
	}
	x.folded(e, n)
	return nil
}

// sync scatters and folds. It may be given up on its way: then a gather takes its place if
// its scatter is through, else a new sync.
func (x *survivor) sync() error {
	clock := x.obj.s.Clock() + 1
	x.prepare(clock)
	e := x.note(x.sending(synced, clock, nil))
	e.Op = int64(foldMean)
	var n int
	seen, gather := x.givenUp, false
	if err := x.call(gathering, "sync", func(ctx context.Context) (err error) {
		if x.givenUp > seen {
			seen, gather = x.givenUp, x.obj.s.Clock() == clock
			x.tally.add("syncs given up", 1)
		}
		if gather {
			n, err = x.obj.v.Gather(ctx, "")
		} else {
			n, err = x.obj.v.Sync(ctx, weight(x.me(), clock))
		}
		return err
	}); err != nil {
		return err
	}
	x.page.at(x.me(), scatters).Add(1)
	x.tally.add("scatters "+x.ph.mode.String(), 1)
	if x.shared && x.plan.weather != nil {
		x.tally.add("syncs of vectors that hosts exchange", 1)
	}
	x.folded(e, n)
	return nil
}

func (x *survivor) folded(e *event, n int) {
	x.page.at(x.me(), gathers).Add(1)
	x.tally.add("gathers "+x.ph.mode.String(), 1)
	x.tally.add("folded "+x.ph.mode.String(), n)
	e.Count, e.Result = int64(n), x.holds()
	x.end(e)
}
