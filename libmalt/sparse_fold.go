package libmalt

import (
	"cmp"
	"slices"

	"malt/internal/say"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// decode reads the messages of the updates that are held.
func (v *Vector) decode() error {
	p := v.sparse
	if p == nil {
		return nil
	}
	for len(p.us) < len(v.updates) {
		p.us, p.values = append(p.us, spvec.Update{}), append(p.values, nil)
	}
	for i := range v.updates {
		u, d := &v.updates[i], &p.us[i]
		if err := d.Decode(u.kind, u.Data, p.shape, u.seq, u.read); err != nil {
			return say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %v", v.called("gather"), u.Rank, err)
		}
		d.Weight = u.Weight
		if !d.All {
			u.Rows = slices.Clip(d.Index)
		}
	}
	return nil
}

// present makes the updates what a fold of the user's sees.
func (v *Vector) present() {
	for i := range v.updates {
		if u := &v.updates[i]; u.Rows != nil {
			u.Data = v.sparse.us[i].Values(&v.sparse.values[i], v.sparse.shape)
		}
	}
}

// foldSparse combines updates into the vector where not all of them are whole.
func (v *Vector) foldSparse(op reduce.Op) {
	p := v.sparse
	us := p.us[:len(v.updates)]
	if op == reduce.Replace {
		// As for whole vectors, but row by row: the newest that mentions it.
		order := make([]int, len(us))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(v.updates[a].Clock, v.updates[b].Clock), cmp.Compare(b, a))
		})
		sorted := make([]spvec.Update, len(us))
		for i, o := range order {
			sorted[i] = us[o]
		}
		us = sorted
	}
	before := 0
	for _, u := range v.updates {
		if u.Rank < v.w.rank {
			before++
		}
	}
	absent := spvec.Keep
	if p.kind == sparseGradient {
		absent = spvec.Zero
	}
	p.folder.Fold(op, absent, p.shape, v.data, before, v.weight, us)
}

// Whole is the i-th of the updates that Begin has found, laid out as the vector
// is, valid until End. Rows that the update does not mention are, of a model,
// those of the vector at the first call for i, of a gradient zero.
func (v *Vector) Whole(i int) ([]byte, error) {
	p := v.sparse
	if p == nil || p.us[i].All {
		return v.updates[i].Data, nil
	}
	for len(p.wholes) <= i {
		b, err := v.w.t.Map(max(len(v.data), 1))
		if err != nil {
			return nil, err
		}
		p.wholes = append(p.wholes, b)
	}
	b := p.wholes[i][:len(v.data)]
	if v.updates[i].whole {
		return b, nil
	}
	v.updates[i].whole = true
	if p.kind == sparseModel {
		copy(b, v.data)
	} else {
		clear(b)
	}
	p.us[i].Expand(b, p.shape)
	return b, nil
}
