package codec

import (
	"cmp"
	"slices"

	"malt/internal/say"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

func (p *rows) Decode(us []Update) error {
	for len(p.us) < len(us) {
		p.us, p.values = append(p.us, spvec.Update{}), append(p.values, nil)
	}
	for i := range us {
		u, d := &us[i], &p.us[i]
		if err := d.Decode(u.Kind, u.Data, p.shape, u.Seq, u.Read); err != nil {
			return say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %v", p.m.Called("gather"), u.Rank, err)
		}
		d.Weight, d.Rank = u.Weight, u.Rank
		if !d.All {
			u.Rows = slices.Clip(d.Index)
		}
	}
	return nil
}

func (p *rows) Shows() error { return nil }

func (p *rows) Show(us []Update) {
	for i := range us {
		if u := &us[i]; u.Rows != nil {
			u.Data = p.us[i].Values(&p.values[i], p.shape)
		}
	}
}

func (p *model) Fold(op reduce.Op, weight float64, us []Update) bool {
	return p.fold(op, spvec.Keep, weight, us)
}

func (p *gradient) Fold(op reduce.Op, weight float64, us []Update) bool {
	return p.fold(op, spvec.Zero, weight, us)
}

func (p *rows) fold(op reduce.Op, absent spvec.Absent, weight float64, updates []Update) bool {
	if !slices.ContainsFunc(updates, func(u Update) bool { return u.Rows != nil }) {
		return false
	}
	us := p.us[:len(updates)]
	if op == reduce.Replace {
		// As for whole vectors, but row by row: the newest that mentions it.
		order := make([]int, len(us))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(updates[a].Clock, updates[b].Clock), cmp.Compare(b, a))
		})
		sorted := make([]spvec.Update, len(us))
		for i, o := range order {
			sorted[i] = us[o]
		}
		us = sorted
	}
	before := 0
	for _, u := range updates {
		if u.Rank < p.m.Job.Rank {
			before++
		}
	}
	if from := p.folder.Fold(op, absent, p.shape, p.m.Data, before, weight, us); from >= 0 {
		p.m.Brought(from, nil) // once: a row may come again after a fold of others
	}
	return true
}

func (p *model) Whole(us []Update, i int) ([]byte, error) {
	return p.whole(us, i, func(b []byte) { copy(b, p.m.Data) })
}

func (p *gradient) Whole(us []Update, i int) ([]byte, error) {
	return p.whole(us, i, func(b []byte) { clear(b) })
}

// whole is Whole; begin sets the rows that are not mentioned.
func (p *rows) whole(us []Update, i int, begin func(b []byte)) ([]byte, error) {
	if p.us[i].All {
		return us[i].Data, nil
	}
	for len(p.wholes) <= i {
		b, err := p.m.Job.T.Map(max(len(p.m.Data), 1))
		if err != nil {
			return nil, err
		}
		p.wholes = append(p.wholes, b)
	}
	b := p.wholes[i][:len(p.m.Data)]
	if !us[i].whole {
		us[i].whole = true
		begin(b)
		p.us[i].Expand(b, p.shape)
	}
	return b, nil
}
