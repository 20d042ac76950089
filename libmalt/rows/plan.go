package rows

import (
	"malt/graphs"
	"malt/internal/say"
	"malt/rdma"
)

// Plan is the way of rows: where those of this rank go in each stage, and where those that it
// wants come from. It has no values. It is made stage by stage, from what the members of each send.
type Plan struct {
	stages []stage
	in     []uint32 // by row of the program: its place among the ids of this rank
	out    []uint32 // by wanted row: the same among the wanted ids
	found  []uint32 // by id wanted of this rank after the last stage: the place of its row; none: behind the last
	counts []uint64 // by row there: how many rows of programs are in it
	rows   []int    // before each stage, and after the last

	most   int // rows at a time, down or up
	made   int // stages
	within span
	holds  set // after so many
	wants  set
}

// stage is what a rank knows of one.
type stage struct {
	group []int // its members, ascending
	own   int   // which of them this rank is

	gives, asks []int      // before it: the ids from j to j+1 go to member j; are asked of it
	adds, sends [][]uint32 // after it, by member: the places of what it gives; of what it asks for
}

// NewPlan is for a rank with these ids of its rows, and of those that it wants.
func NewPlan(stages []graphs.Stage, rank int, ids, wants []uint64) *Plan {
	p := &Plan{within: everything}
	for _, s := range stages {
		n := stage{group: s.Group}
		for i, r := range s.Group {
			if r == rank {
				n.own = i
			}
		}
		p.stages = append(p.stages, n)
	}
	p.holds, p.in = setOf(ids, true)
	p.wants, p.out = setOf(wants, false)
	p.begin()
	return p
}

// begin begins the next stage, or ends the plan.
func (p *Plan) begin() {
	p.rows = append(p.rows, len(p.holds.ids))
	p.most = max(p.most, len(p.holds.ids), len(p.wants.ids))
	if p.made == len(p.stages) {
		p.meet()
		return
	}
	s := &p.stages[p.made]
	k := len(s.group)
	s.gives, s.asks = p.holds.bounds(p.within, k), p.wants.bounds(p.within, k)
}

// part is what goes to a member of the stage, or stays if that is this rank.
func (p *Plan) part(member int) (holds, wants set) {
	s := &p.stages[p.made]
	return p.holds.cut(s.gives[member], s.gives[member+1]), p.wants.cut(s.asks[member], s.asks[member+1])
}

// List is that in bytes.
func (p *Plan) List(member int) []byte {
	in := p.within.part(member, len(p.stages[p.made].group))
	holds, wants := p.part(member)
	return wants.encode(holds.encode(nil, in), in)
}

// Take ends a stage with the lists of its members; there is none of this rank.
func (p *Plan) Take(lists [][]byte) error {
	s := &p.stages[p.made]
	in := p.within.part(s.own, len(s.group))
	holds, wants := make([]set, len(s.group)), make([]set, len(s.group))
	for i, b := range lists {
		if i == s.own {
			holds[i], wants[i] = p.part(i)
			continue
		}
		var err error
		if holds[i], b, err = decode(b, in, true); err == nil {
			wants[i], b, err = decode(b, in, false)
		}
		if err == nil && len(b) > 0 {
			err = say.Errorf(rdma.ErrCorrupt, "%d bytes follow a list of ids", len(b))
		}
		if err != nil {
			return say.Errorf(rdma.ErrCorrupt, "rank %d sent ids that cannot be: %v", s.group[i], err)
		}
	}
	p.holds, p.wants, p.within = union(holds), union(wants), in
	for i := range s.group {
		s.adds = append(s.adds, p.holds.places(holds[i]))
		s.sends = append(s.sends, p.wants.places(wants[i]))
	}
	p.made++
	p.begin()
	return nil
}

// meet finds each wanted id among those that there are.
func (p *Plan) meet() {
	none, at := uint32(len(p.holds.ids)), uint32(0)
	p.found = make([]uint32, len(p.wants.ids))
	for i, id := range p.wants.ids {
		for at < none && p.holds.ids[at] < id {
			at++
		}
		if p.found[i] = none; at < none && p.holds.ids[at] == id {
			p.found[i] = at
		}
	}
	p.counts = p.holds.counts
	p.holds, p.wants = set{}, set{}
}
