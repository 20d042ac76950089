package rows

import (
	"slices"
	"time"

	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
)

// call is a sync under way, or the making of the plan. It goes down the stages, a round each, and
// up again: in the making down with lists of ids, and up with what is missing.
type call struct {
	Course
	making bool
	open   bool      // the round has begun
	turned bool      // it goes up
	rows   [2][]byte // before and after the round
	folded []int     // on the way down, by member of the stage: its rows that have been
	gives  [][]byte  // lists of ids, by member: to it, and from it
	gets   [][]byte
}

// late are the ranks that the last step lacked.
func (c *call) late() []int {
	if !c.open {
		return nil
	}
	return c.Course.late(nil)
}

// stage is that of the round.
func (e *Engine) stage() *stage {
	down := int(e.call.round)
	return &e.plan.stages[min(down, 2*len(e.plan.stages)-1-down)]
}

// shape is that of what goes up: rows, or a byte for each.
func (e *Engine) shape() spvec.Shape {
	if e.call.making {
		return spvec.Shape{Width: 1, Elem: 1}
	}
	return e.row
}

func (e *Engine) begin(number uint64, making bool) {
	c := &e.call
	c.making, c.open, c.turned = making, false, false
	c.enter(number, 0, nil)
	if !making {
		c.rows = e.mapped
		e.neutral(c.rows[0], e.plan.rows[0])
		spvec.FoldAt(e.op, e.row, c.rows[0], e.o.Array(), e.plan.in)
	}
}

func (e *Engine) neutral(b []byte, rows int) {
	spvec.Neutral(e.op, e.row, b[:rows*e.row.RowBytes()])
}

// Step goes on with the call. It never blocks.
func (e *Engine) Step() (done bool, err error) {
	c := &e.call
	for {
		if !c.open {
			if int(c.round) == len(e.plan.stages) && !c.turned {
				if err := e.turn(); err != nil {
					return false, err
				}
			}
			if int(c.round) == 2*len(e.plan.stages) {
				return true, nil
			}
			e.open()
		}
		moved, err := e.move()
		if err != nil {
			return false, err
		}
		switch {
		case c.over() && e.ownIn():
			if err := e.close(); err != nil {
				return false, err
			}
		case !moved:
			return false, nil
		}
	}
}

// open begins the round.
func (e *Engine) open() {
	c, s, size := &e.call, e.stage(), e.shape().RowBytes()
	peers := c.peers[:0]
	c.folded = append(c.folded[:0], make([]int, len(s.group))...)
	if c.making {
		c.gives, c.gets = make([][]byte, len(s.group)), make([][]byte, len(s.group))
	}
	for j, r := range s.group {
		p := peer{rank: r}
		switch {
		case j == s.own:
		case c.turned:
			p.to, p.from = len(s.sends[j])*size, (s.asks[j+1]-s.asks[j])*size
		case c.making:
			c.gives[j] = e.plan.List(j)
			p.to, p.from = len(c.gives[j]), unknown
		default:
			p.to, p.from = (s.gives[j+1]-s.gives[j])*size, len(s.adds[j])*size
		}
		peers = append(peers, p)
	}
	c.enter(c.number, c.round, peers)
	switch {
	case c.turned:
		spvec.Pick(e.shape(), c.rows[1][s.asks[s.own]*size:], c.rows[0], s.sends[s.own])
	case !c.making:
		e.neutral(c.rows[1], e.plan.rows[c.round+1])
	}
	c.open = true
}

// move sends, receives and folds what can be.
func (e *Engine) move() (moved bool, err error) {
	s, c := e.stage(), &e.call
	for j, r := range s.group {
		if j == s.own {
			continue
		}
		sent, err := e.send(j, e.links[r])
		if err != nil {
			return false, err
		}
		received, err := e.receive(j, e.links[r])
		if err != nil {
			return false, err
		}
		moved = moved || sent || received
	}
	if !c.turned && !c.making {
		if start := time.Now(); e.fold(s) {
			moved = true
			e.o.Folded(time.Since(start))
		}
	}
	return moved, nil
}

// send sends to a member as much as there is room for.
func (e *Engine) send(j int, l *link) (moved bool, err error) {
	s, c, size := e.stage(), &e.call, e.shape().RowBytes()
	for {
		n, stamp := c.next(j)
		if n == 0 {
			return moved, nil
		}
		b, err := l.out.Begin()
		if b == nil || err != nil {
			return moved, err
		}
		if err := l.out.Reserve(n); err != nil {
			return moved, err
		}
		switch at := c.peers[j].sent; {
		case c.turned:
			spvec.Pick(e.shape(), b[:n], c.rows[0], s.sends[j][at/size:][:n/size])
		case c.making:
			reduce.Copy(b[:n], c.gives[j][at:])
		default:
			reduce.Copy(b[:n], c.rows[0][s.gives[j]*size+at:])
		}
		if err := l.out.Commit(n, stamp, nil); err != nil {
			return moved, err
		}
		c.peers[j].sent += n
		moved = true
		if !c.making {
			edge := &e.edges[c.peers[j].rank]
			edge.SentMessages++
			edge.SentBytes += uint64(n)
		}
	}
}

// receive takes what has come from a member; of values on the way down, which fold takes, it has
// the next message ready.
func (e *Engine) receive(j int, l *link) (moved bool, err error) {
	s, c, size := e.stage(), &e.call, e.shape().RowBytes()
	for p := &c.peers[j]; p.got != p.from; {
		if !l.has {
			if l.held, l.has, err = l.in.Next(); !l.has || err != nil {
				return moved, err
			}
		}
		if c.peers[j].at == 0 {
			what, err := c.judge(j, l.held.Stamp, len(l.held.Data))
			if err != nil || what == keep {
				return moved, err
			}
			if what == drop {
				l.in.Release(l.held.Seq)
				l.has = false
				continue
			}
			l.used, moved = 0, true
		}
		switch {
		case c.turned:
			reduce.Copy(c.rows[1][s.asks[j]*size+p.got:], l.held.Data)
		case c.making:
			c.gets[j] = append(c.gets[j], l.held.Data...)
		default:
			return moved, nil
		}
		e.took(j, l)
	}
	return moved, nil
}

// took says that the message of a member is done with.
func (e *Engine) took(j int, l *link) {
	c := &e.call
	if c.took(j); !c.making {
		e.edges[c.peers[j].rank].Fold(0, len(l.held.Data))
	}
	l.in.Release(l.held.Seq)
	l.has = false
}

// fold adds rows that have come, for each place in the order of members: a row waits while a
// member before its own may yet bring one for its place.
func (e *Engine) fold(s *stage) (moved bool) {
	c, size := &e.call, e.row.RowBytes()
	limit := uint32(e.plan.rows[c.round+1])
	for j, r := range s.group {
		places, l := s.adds[j][c.folded[j]:], e.links[r]
		var data []byte
		switch {
		case j == s.own:
			data = c.rows[0][(s.gives[j]+c.folded[j])*size : s.gives[j+1]*size]
		case c.peers[j].at > 0:
			data = l.held.Data[l.used:]
		}
		n, _ := slices.BinarySearch(places, limit)
		if n = min(n, len(data)/size); n > 0 {
			spvec.FoldAt(e.op, e.row, c.rows[1], data[:n*size], places[:n])
			c.folded[j] += n
			moved = true
			if j != s.own {
				if l.used += n * size; l.used == len(l.held.Data) {
					e.took(j, l)
				}
			}
		}
		if n < len(places) {
			limit = min(limit, places[n])
		}
	}
	return moved
}

// ownIn tells whether this rank's own rows are in the result of the round.
func (e *Engine) ownIn() bool {
	s, c := e.stage(), &e.call
	return c.turned || c.making || c.folded[s.own] == len(s.adds[s.own])
}

// close ends the round.
func (e *Engine) close() error {
	c := &e.call
	if c.making && !c.turned {
		if err := e.plan.Take(c.gets); err != nil {
			return err
		}
	}
	c.rows[0], c.rows[1] = c.rows[1], c.rows[0]
	c.round++
	c.open = false
	return nil
}

// turn takes what is wanted of the rows after the last stage.
func (e *Engine) turn() (err error) {
	c, p, size := &e.call, e.plan, e.row.RowBytes()
	c.turned = true
	none := len(p.counts)
	if c.making {
		for i := range e.mapped {
			if e.mapped[i], err = e.o.Transport().Map((p.most + 1) * size); err != nil {
				return err
			}
		}
		c.rows = e.mapped
		for i, at := range p.found {
			if int(at) == none {
				c.rows[0][i] = 1
			}
		}
		return nil
	}
	if e.op == reduce.Mean {
		spvec.Divide(e.row, c.rows[0], p.counts)
	}
	clear(c.rows[0][none*size:][:size])
	spvec.Pick(e.row, c.rows[1], c.rows[0], p.found)
	c.rows[0], c.rows[1] = c.rows[1], c.rows[0]
	return nil
}

// Finish hands over what has come.
func (e *Engine) Finish() {
	values, missing := e.Wanted()
	switch c := &e.call; {
	case !c.making:
		spvec.Pick(e.row, values, c.rows[0], e.plan.out)
	case len(missing) > 0:
		spvec.Pick(e.shape(), missing, c.rows[0], e.plan.out)
	}
}
