package libmalt

import (
	"fmt"

	"malt/graphs"
	"malt/libmalt/boxes"
	"malt/libmalt/butterfly"
	"malt/libmalt/codec"
	"malt/libmalt/engine"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/route/hosts"
	"malt/libmalt/route/shared"
	"malt/libmalt/rows"
	"malt/libmalt/shards"
	"malt/libmalt/spvec"
)

// routes are tried in turn for a new vector; the first that fits carries it. This table
// is the only place that names one. make may return nil: the vector has no route.
var routes = []struct {
	fits func(v *Vector) bool
	make func(v *Vector, o core.Boxed, bytes int) (core.Route, error)
}{
	{near, func(v *Vector, o core.Boxed, bytes int) (core.Route, error) { return shared.New(o, bytes) }},
	{several, func(v *Vector, o core.Boxed, bytes int) (core.Route, error) {
		r, err := hosts.New(o, v.Job.Hosts, bytes, v.mode.Load().wire)
		if r == nil {
			return nil, err // not an interface that holds nil
		}
		return r, err
	}},
}

// engines come before routes: a vector that one of them fits has no boxes. This table is the
// only place that names one.
var engines = []struct {
	fits func(v *Vector) bool
	make func(v *Vector, o core.Object, bytes int) (core.Carrier, error)
}{
	{inStages, func(v *Vector, o core.Object, bytes int) (core.Carrier, error) {
		m := v.mode.Load()
		return butterfly.New(o, m.Graph, m.fold, bytes)
	}},
	{inShards, func(v *Vector, o core.Object, bytes int) (core.Carrier, error) {
		m := v.mode.Load()
		row := v.rows
		if m.sparse == codec.Dense {
			row = spvec.Shape{}
		}
		return shards.New(o, m.Graph, m.fold, bytes, row, m.filter)
	}},
	{func(v *Vector) bool { return v.keyed }, func(v *Vector, _ core.Object, _ int) (core.Carrier, error) {
		return keyed(v, v.rows, v.ids)
	}},
}

// keyed has rows with ids meet in the stages of the graph: on all in one.
func keyed(v *Vector, row spvec.Shape, ids rows.Ids) (core.Meeting, error) {
	m := v.mode.Load()
	g, size := m.Graph, v.Job.Size
	if !g.InStages() && size > 1 {
		var err error
		if g, err = graphs.Parse(fmt.Sprintf("butterfly:%d", size), size); err != nil {
			return nil, err
		}
	}
	return rows.New(core.Carried{M: &v.Member}, g, m.fold, row, ids)
}

// InShares tells whether hosts of so many ranks each average so many bytes in shares, each
// summed by its owner, and not by sending all to all.
func InShares(bytes int, counts []int) bool { return hosts.Pays(bytes, counts) }

// inStages tells whether changes go through the stages of a butterfly.
func inStages(v *Vector) bool {
	m := v.mode.Load()
	return m.fold.Changes() && m.Graph.InStages() && v.Job.Size > 1
}

// inShards tells whether some ranks keep a part each.
func inShards(v *Vector) bool { return v.mode.Load().Graph.Keepers() > 0 && v.Job.Size > 1 }

// near tells whether all ranks share memory, and keep it: where ranks are replaced, others
// cannot map it as part of another job.
func near(v *Vector) bool {
	return v.mode.Load().inStep(v.Job.Size) && v.Job.Size > 1 && len(v.Job.T.Near()) == v.Job.Size && v.w.again == nil
}

// several tells whether the ranks are on several hosts.
func several(v *Vector) bool {
	return v.mode.Load().inStep(v.Job.Size) && len(v.Job.Hosts.Ranks) > 1
}

// travel chooses the way of o, which is part of v unless that is nil, for so many bytes in
// such rows.
func (o *Object) travel(v *Vector, rows spvec.Shape, bytes int) error {
	var runs []reduce.Run
	if v != nil {
		runs = v.runs
	}
	for _, e := range engines {
		if v != nil && e.fits(v) {
			made, err := e.make(v, core.Carried{M: &o.Member, Layout: runs}, bytes)
			if err != nil {
				return err
			}
			m := o.mode.Load()
			switch made := made.(type) {
			case core.Engine:
				o.way = engine.New(&o.Member, made, m.fold, m.Rule.Slack())
			case core.Meeting:
				o.way = engine.Meet(&o.Member, made)
			}
			o.Body = o.way
			return nil
		}
	}
	m := o.mode.Load()
	b, err := boxes.New(&o.Member, runs, m.sparse, m.filter, rows, m.fold)
	o.way, o.Body = b, b
	if err != nil || v == nil {
		return err
	}
	for _, r := range routes {
		if r.fits(v) {
			made, err := r.make(v, b.ForRoute(), bytes)
			if err == nil && made != nil {
				b.Route = made
			}
			return err
		}
	}
	return nil
}
