package explore

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Options bound a search.
type Options struct {
	Kills int // threads that are killed, at most, over one execution
	Limit int // states after which the search is given up; 0: no limit

	// Buffered has stores reach memory late, as plain stores do on x86.
	Buffered bool

	// Preemptions bounds how often a thread that could go on has to stop for another,
	// over one execution; 0: no bound; less: it never stops, but for a wait or a death. It
	// is for cases of which all interleavings are too many, and then says nothing of the others.
	Preemptions int
}

// Result is what a search has found.
type Result struct {
	States     int // different ones
	Turns      int // ways from one to the next
	Executions int
	Shared     int      // words that two threads meet on
	Failure    string   // "" if every execution is right
	Trace      []string // the turns that lead to the failure
	GivenUp    bool     // at Options.Limit
}

func (r Result) String() string {
	s := fmt.Sprintf("%d states, %d turns, %d executions, %d shared words", r.States, r.Turns, r.Executions, r.Shared)
	if r.GivenUp {
		s += ", given up"
	}
	if r.Failure != "" {
		s += "\n" + r.Failure + "\n  " + strings.Join(r.Trace, "\n  ")
	}
	return s
}

// Check runs the case that setup describes through every schedule, until one
// goes wrong. setup is called for each execution and must do the same each time.
func Check(opts Options, setup func(*Exec)) Result {
	x := claim()
	defer x.release()
	x.opts, x.setup = opts, setup
	x.wander()
	for {
		s := search{x: x, seen: newSet()}
		s.run()
		if !x.again {
			s.result.Shared = x.sharedWords()
			return s.result
		}
		x.again = false
	}
}

// search goes depth first over schedules. way leads from the beginning to the
// state under consideration.
type search struct {
	x      *Exec
	seen   *set
	way    []node
	path   []turn // of a replay
	result Result
}

// node is a state on the way.
type node struct {
	turns []turn // that lead to new states
	taken int    // which of them is under consideration
	pasts [maxThreads]uint64
}

// run executes one schedule after the other. It ends early when a word turns out
// to be shared.
func (s *search) run() {
	for {
		s.result.Executions++
		s.replay()
		for s.onNewGround() && s.goOn() {
		}
		s.x.end()
		if s.x.again || s.result.Failure != "" || s.result.GivenUp || !s.turnBack() {
			return
		}
	}
}

// replay begins an execution and takes it along the way.
func (s *search) replay() {
	x := s.x
	x.replaying = len(s.way) > 0
	x.begin()
	if !x.replaying {
		return
	}
	s.path = s.path[:0]
	for i := range s.way {
		s.path = append(s.path, s.way[i].turns[s.way[i].taken])
	}
	last := len(s.path) - 1
	for x.ahead = s.path[:last]; len(x.ahead) > 0; {
		x.take(x.next())
	}
	x.recall(s.way[last].pasts)
	x.take(s.path[last])
}

// onNewGround tells whether the state is right and was not seen before.
func (s *search) onNewGround() bool {
	switch {
	case s.x.again:
		return false
	case s.x.failure != "":
		s.failed()
		return false
	case !s.seen.add(s.x.key()):
		return false
	}
	s.result.States++
	if s.x.always != nil {
		if s.x.always(s.x.report); s.x.failure != "" {
			s.failed()
			return false
		}
	}
	s.result.GivenUp = s.result.States == s.x.opts.Limit
	return !s.result.GivenUp
}

// goOn takes the first turn to a new state, if there is one.
func (s *search) goOn() bool {
	s.way = extend(s.way)
	n := &s.way[len(s.way)-1]
	var stuck bool
	n.turns, stuck = s.x.turns(n.turns[:0])
	n.taken = 0
	s.result.Turns += len(n.turns)
	if stuck {
		if s.x.judge(); s.x.failure != "" {
			s.way = s.way[:len(s.way)-1]
			s.failed()
			return false
		}
	}
	kept := n.turns[:0]
	for _, c := range n.turns {
		if s.seen.add(s.x.peek(c)) {
			kept = append(kept, c)
		}
	}
	n.turns = kept
	if len(n.turns) == 0 {
		s.way = s.way[:len(s.way)-1]
		return false
	}
	for i, t := range s.x.threads {
		n.pasts[i] = t.past
	}
	s.x.take(n.turns[0])
	return true
}

// extend makes the way longer by a node, whose memory may have been used before.
func extend(way []node) []node {
	if len(way) < cap(way) {
		return way[:len(way)+1]
	}
	return append(way, node{})
}

// turnBack goes back to the last state that has a turn left, if there is one.
func (s *search) turnBack() bool {
	for len(s.way) > 0 {
		n := &s.way[len(s.way)-1]
		if n.taken++; n.taken < len(n.turns) {
			return true
		}
		s.way = s.way[:len(s.way)-1]
	}
	return false
}

// failed runs the schedule again to tell what happens in it.
func (s *search) failed() {
	x := s.x
	s.result.Failure = x.failure
	x.end()
	x.tracing, x.trace, x.replaying = true, nil, false
	x.begin()
	for i := range s.way {
		x.take(s.way[i].turns[s.way[i].taken])
	}
	s.result.Trace = x.trace
	x.tracing = false
}

// wander takes turns of chance until no more words turn out to be shared. It saves
// searches, each of which would end at such a word.
func (x *Exec) wander() {
	const enough, longest = 64, 10_000 // executions in vain, turns
	chance := rand.New(rand.NewPCG(1, 1))
	var turns []turn
	x.replaying = true
	for vain, known := 0, 0; vain < enough; vain++ {
		x.begin()
		for range longest {
			if turns, _ = x.turns(turns[:0]); len(turns) == 0 {
				break
			}
			c := turns[chance.IntN(len(turns))]
			if c.what == dies && chance.IntN(16) > 0 { // late rather than early
				c = turns[0]
			}
			x.take(c)
		}
		x.end()
		if n := x.sharedWords(); n > known {
			known, vain = n, 0
		}
	}
	x.again = false
}

// set is a set of hashes: of numbers that look random already. It is never
// asked for 0.
type set struct {
	slots []uint64 // a power of two of them
	n     int
}

func newSet() *set { return &set{slots: make([]uint64, 1<<12)} }

// add is false if v was there.
func (s *set) add(v uint64) bool {
	if v == 0 {
		v = 1
	}
	if 4*s.n > 3*len(s.slots) {
		old := s.slots
		s.slots, s.n = make([]uint64, 4*len(old)), 0
		for _, v := range old {
			if v != 0 {
				s.add(v)
			}
		}
	}
	for i := v; ; i++ {
		at := &s.slots[i&uint64(len(s.slots)-1)]
		switch *at {
		case v:
			return false
		case 0:
			*at = v
			s.n++
			return true
		}
	}
}
