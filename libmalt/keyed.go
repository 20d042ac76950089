package libmalt

import (
	"context"

	"malt/internal/say"
	"malt/libmalt/codec"
	"malt/libmalt/engine"
	"malt/libmalt/internal/core"
	"malt/libmalt/narrow"
	"malt/libmalt/reduce"
	"malt/libmalt/rows"
	"malt/libmalt/rule"
)

// A vector whose rows have ids has other rows on each rank. So nothing is alike on all but the
// length of a row, and its syncs are collective calls.

// checkIDs refuses what does not go with ids.
func (m mode) checkIDs() error {
	refused := func(option, why, do string) error {
		return say.Errorf(ErrInvalid, "%s does not go with ids=", option).At("%s", why).Try("%s", do)
	}
	switch {
	case m.Graph.String() != "all" && !m.Graph.InStages():
		return refused("graph="+m.Graph.String(), "rows meet where all ranks can send to all, or in stages", "Take graph=all or butterfly.")
	case m.Rule.Kind != rule.BSP:
		return refused("consistency="+m.Rule.String(), "all ranks meet in each sync", "Take consistency=bsp, or leave it out.")
	case m.sparse != codec.Dense:
		return refused("sparse="+m.sparse.String(), "each rank sends its own rows alone", "Leave sparse out.")
	case m.wire != narrow.Exact:
		return refused("wire="+m.wire.String(), "values of rows travel as they are", "Leave wire out.")
	case m.fold != reduce.Sum && m.fold != reduce.Mean && m.fold != reduce.Min && m.fold != reduce.Max:
		return refused("fold="+m.fold.String(), "each row is combined where its id belongs", "Take fold=sum, mean, min or max.")
	}
	return nil
}

// alike fails if the ranks do not hold the same rows.
func (v *Vector) alike(method string) error {
	if !v.keyed {
		return nil
	}
	return say.Errorf(ErrUnsupported, "%s: a vector with ids has other rows on each rank", v.Called(method)).
		In(v.Called(method)).Try("Call sync() on all ranks, which combines the rows with equal ids.")
}

// Wanted is what the last sync of a vector with ids has brought: the rows of Wants, and a byte for
// each, 1 if no rank holds it; without Wants it brings the array, and there are no such bytes. n is
// the number of rows. Valid as long as the array is.
func (v *Vector) Wanted() (values, missing []byte, n int, err error) {
	if !v.keyed {
		return nil, nil, 0, say.Errorf(ErrInvalid, "%s has no wanted rows", v).Try("Make the vector with ids= and wants=.")
	}
	values, missing = v.way.(*engine.Together).Meeting.Wanted()
	return values, missing, len(values) / v.rows.RowBytes(), nil
}

// ConfigureRows gives the vector other rows, all 0, and has it want others. Collective. The memory of
// the array is another then, and what it was can be unmapped. On an error v is as it was.
func (v *Vector) ConfigureRows(ctx context.Context, ids, wants []uint64) error {
	if !v.keyed {
		return say.Errorf(ErrInvalid, "%s has no ids", v).In(v.Called("configure")).Try("Make the vector with ids=.")
	}
	a := Array{DType: v.arrays[0].Type, Row: v.rows.Width, Count: len(ids) * v.rows.Width, IDs: ids, Wants: wants}
	shape, err := keyedShape([]Array{a})
	if err != nil {
		return err
	}
	return v.Alone(func() error {
		what := core.OpOf(v.Called("configure"), "ids, wants", &v.Member)
		return v.Job.Run(ctx, what, func() (core.Stepper, error) {
			old := *v.mode.Load()
			next := &Vector{}
			bytes, err := next.layout([]Array{a})
			if err != nil {
				return nil, err
			}
			carrier, failed := keyed(v, shape, rows.Ids{Rows: ids, Wants: wants})
			m := &making{w: v.w}
			if failed == nil {
				m.way = engine.Meet(&v.Member, carrier)
				m.undo = func() { _ = v.Job.T.Unmap(carrier.Memory()) }
			}
			m.start(what, old, failed)
			m.done = func() {
				was := v.way
				m.way.Use(m.part.View())
				v.way, v.Body = m.way, m.way
				v.arrays, v.runs, v.rows = next.arrays, next.runs, shape
				_ = v.Job.Disown(&v.Member)
				_ = v.Job.Alloc(&v.Member, carrier.Memory(), bytes) // it fails only where it has to map some
				_ = was.Leave()
			}
			return m, nil
		})
	})
}
