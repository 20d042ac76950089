package libmalt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"malt/internal/say"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// makeSegment makes s, part of object (itself, or the vector around it). It
// returns the object that was made: that of the first call where this one goes
// on with it.
func (w *World) makeSegment(ctx context.Context, object any, s *Segment, name, options string, keys []string, bytes int, shape string, init func()) (any, error) {
	mode, err := w.checked(name, options, keys)
	if err != nil {
		return nil, err
	}
	var rows spvec.Shape
	if v, ok := object.(*Vector); ok {
		switch {
		case mode.representation == dense && v.inRows:
			return nil, say.Errorf(ErrInvalid, "an array has rows, and its vector is not sparse").Try("Leave row at 0, or make it with sparse=model or sparse=gradient.")
		case mode.representation != dense && v.dense != nil:
			return nil, v.dense
		case mode.representation != dense:
			rows = v.rows
			shape += fmt.Sprintf(" in rows of %d", rows.Width)
		}
	}
	with := shape + " " + mode.agreed()
	if name != "" {
		with = fmt.Sprintf("%q, %s", name, with)
	}
	what := opOf("malt."+strings.ToUpper(s.kind[:1])+s.kind[1:], with, nil)
	op, err := w.run(ctx, call{key: what}, func() (stepper, error) {
		s.w, s.id, s.name, s.mode, s.weight = w, uint32(w.calls.Load()+1), name, mode, 1
		if name == "" {
			w.unnamed[s.kind]++
			s.name, s.unnamed = fmt.Sprintf("%s-%d", s.kind, w.unnamed[s.kind]), true
		}
		s.gate.keeping = &w.keeping
		s.stats.Edges, s.told = make([]Edge, w.size), make([]standing, w.size)
		m := &making{w: w, s: s, object: object}
		if v, ok := object.(*Vector); ok && !mode.startOwn {
			m.values = v
		}
		err := w.alloc(s, bytes)
		if err == nil {
			init()
			m.undo = func() {
				_ = s.unshare()
				w.disown(s)
				_ = firstOf(w.Unmap(s.base), s.unmapSparse())
			}
			if mode.representation != dense {
				err = s.newSparse(mode.representation, rows)
			}
		}
		m.begin(what, mode, err)
		m.done = func() {
			s.ch, s.open = m.ch, true
			s.ch.open(s.stats.Edges)
			s.settle()
			w.enlist(s)
		}
		return m, nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return op.(*making).object, nil
}

// Check is what NewVector says of a name and options, if it refuses them. It is
// not collective.
func (w *World) Check(name, options string) error {
	_, err := w.checked(name, options, modeKeys)
	return err
}

// checked is the mode that options ask for, of a new object of that name.
func (w *World) checked(name, options string, keys []string) (mode, error) {
	if err := checkName(name); err != nil {
		return mode{}, err
	}
	m, err := defaultMode(w.size)
	if err == nil {
		m, err = m.with(options, w.size, keys)
	}
	return m, err
}

// Configure changes what options name: graph, allow_disconnected, consistency
// and, of a vector, fold. Collective; what was unseen counts as seen. On an
// error s is as it was.
func (s *Segment) Configure(ctx context.Context, options string) error {
	keys := modeKeys[:3]
	if s.kind == "vector" {
		keys = modeKeys[:4]
	}
	return s.alone(func() error {
		mode, err := s.mode.with(options, s.w.size, keys)
		if err != nil {
			return err
		}
		what := opOf(s.called("configure"), mode.agreed(), s)
		_, err = s.w.run(ctx, call{what, s}, func() (stepper, error) {
			m := &making{w: s.w, s: s}
			m.begin(what, mode, nil)
			m.done = func() {
				s.catchUp() // what the ranks agreed on is about the old boxes
				s.countOverwritten(true)
				_ = s.ch.close() // nothing is lost: this rank has left it
				s.ch = m.ch
				s.ch.open(s.stats.Edges)
				s.sparse.forget()
				s.setMode(mode)
				s.head.Store(0)
				s.unfolds, s.averagedAt, s.void = 0, 0, false
				s.raise(s.Clock())
				s.changed()
			}
			return m, nil
		}, nil)
		return err
	})
}

// making is the collective making of an object, or its configuring: each rank
// publishes its box, all agree on what it is, connect to each other, and hear
// that everyone has. It is one collective call in two or three parts.
type making struct {
	w      *World
	s      *Segment
	object any     // s, or the vector around it
	values *Vector // gets rank 0's values; nil: every rank has its own
	stage  int
	part   *collective // under way; while joining the one to come
	ch     *channel
	joined chan error
	stop   context.CancelFunc

	failure error  // of this rank, told to all
	done    func() // when all has succeeded
	undo    func() // when not
}

// Stages of a making.
const (
	agreeing   = iota // all tell what they make, and whether they can
	joining           // another goroutine connects the channel
	confirming        // all tell that they are connected
	starting          // rank 0 sends its values
)

// begin publishes this rank's box, unless making has failed already.
func (m *making) begin(what string, mode mode, failure error) {
	m.failure = failure
	if m.failure == nil {
		m.ch, m.failure = publishChannel(m.w, m.s.boxName(), m.s.most(), mode)
	}
	m.part = m.w.collective(what, nil, &keep{}) // sends nothing, or why this rank failed
	m.part.last = false
	if m.failure != nil {
		m.part.data = m.part.reason(m.failure)
	}
}

func (m *making) step() (bool, error) {
	done, err := m.advance()
	if err != nil {
		m.abandon()
	} else if done {
		m.done()
	}
	return done, err
}

func (m *making) advance() (bool, error) {
	for ; ; m.stage++ {
		if m.stage == joining {
			done, err := m.join()
			if err != nil {
				m.part.fail(err)
			}
			if !done || err != nil {
				return false, err
			}
			continue
		}
		if done, err := m.part.step(); !done || err != nil {
			return false, err
		}
		switch {
		case m.stage == agreeing:
			if err := m.outcomes(); err != nil {
				m.part.end() // as on all ranks
				return false, err
			}
			m.next(nil, &keep{}, m.values == nil)
		case m.part.last:
			return true, nil
		default:
			c := m.values.broadcast("", &fill{fresh: true})
			m.next(c.data, c.sink, true)
		}
	}
}

// next prepares the next part of the call.
func (m *making) next(data []byte, s sink, last bool) {
	c := m.w.collective(m.part.op, data, s)
	c.begun, c.part, c.last = true, m.part.part+1, last
	m.part = c
}

// outcomes is the error of the first rank that failed, the own one preferred.
func (m *making) outcomes() error {
	if m.failure != nil {
		return m.failure
	}
	for r, reason := range m.part.sink.(*keep).parts {
		if len(reason) > 0 {
			return m.part.readReason(r, reason)
		}
	}
	return nil
}

// join connects the channel in a goroutine of its own, since that blocks on
// other ranks; its end rings this rank's doorbell. Meanwhile another rank may
// give up.
func (m *making) join() (bool, error) {
	if m.w.size == 1 {
		err := m.connect(context.Background())
		return err == nil, err
	}
	if m.joined == nil {
		var ctx context.Context
		ctx, m.stop = context.WithCancel(context.Background())
		m.joined = make(chan error, 1)
		go func() {
			m.joined <- m.connect(ctx)
			m.w.t.Wake()
		}()
	}
	select {
	case err := <-m.joined:
		m.stop()
		m.joined = nil
		var dead *rdma.PeerError
		if errors.Is(err, rdma.ErrLeft) || errors.As(err, &dead) {
			err = firstOf(m.part.look(), err) // in the words of the call
		}
		return err == nil, err
	default:
		return false, m.part.look()
	}
}

// connect blocks until the other ranks have published theirs. What averages in
// place and across hosts need comes with the object, not with its configuring.
func (m *making) connect(ctx context.Context) error {
	err := m.ch.join(ctx, m.w.t)
	switch {
	case err != nil || m.object == nil:
	case m.s.shared != nil:
		err = m.s.shared.Join(ctx)
	case m.s.across != nil:
		err = m.s.across.join(ctx, m.w.t, m.s.boxName())
	}
	return err
}

// abandon undoes what there is; the others have been told already.
func (m *making) abandon() {
	if m.joined != nil {
		m.stop()
		<-m.joined
	}
	if m.ch != nil {
		_ = m.ch.close() // there is an error to tell already
	}
	if m.undo != nil {
		m.undo()
	}
}

func (m *making) call() string { return m.part.call() }

func (m *making) waiting() wait {
	if m.stage == joining && len(m.part.late) == 0 {
		return wait{m.call(), "the memory of the other ranks, to map it", "", ""}
	}
	return m.part.waiting()
}

func (m *making) suspend() {}

func (m *making) giveUp() {
	m.part.giveUp()
	m.abandon()
}
