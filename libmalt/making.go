package libmalt

import (
	"context"
	"crypto/sha256"
	"fmt"
)

// makeSegment makes s, part of object (itself, or the vector around it). It
// returns the object that was made: that of the first call where this one goes
// on with it.
func (w *World) makeSegment(ctx context.Context, object any, s *Segment, name, options string, keys []string, bytes int, shape string, init func()) (any, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	mode, err := defaultMode(w.size)
	if err == nil {
		mode, err = mode.with(options, w.size, keys)
	}
	if err != nil {
		return nil, err
	}
	what := describeMaking(fmt.Sprintf("making of %s %q: %s %s", s.kind, name, shape, mode.agreed()))
	op, err := w.run(ctx, what, func() (stepper, error) {
		s.w, s.id, s.name, s.mode, s.weight = w, uint32(w.calls.Load()+1), name, mode, 1
		if name == "" {
			s.name = fmt.Sprintf("%s-%d", s.kind, s.id)
		}
		s.stats.Edges = make([]Edge, w.size)
		m := &making{w: w, s: s, object: object, what: what, mode: mode}
		var b []byte
		if b, m.failure = w.alloc(s, bytes); m.failure == nil {
			s.data, s.base = b[:bytes:bytes], &b[0]
			init()
			m.undo = func() {
				w.disown(s)
				_ = w.Unmap(s.base)
			}
		}
		if v, ok := object.(*Vector); ok && !mode.startOwn {
			m.finish = func() (*collective, error) { return v.broadcast(what+" (values)", 0) }
		}
		m.done = func() {
			s.ch, s.open = m.ch, true
			w.enlist(s)
		}
		return m, nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return op.(*making).object, nil
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
		what := describeMaking(fmt.Sprintf("configuring of %s: %s", s, mode.agreed()))
		_, err = s.w.run(ctx, what, func() (stepper, error) {
			m := &making{w: s.w, s: s, what: what, mode: mode}
			m.done = func() {
				s.countOverwritten()
				old := s.ch
				s.ch, s.mode = m.ch, mode
				s.head.Store(0)
				// What the collectives asked for was about the old boxes.
				clock := s.Clock()
				if l := s.level.Swap(nil); l != nil {
					clock = l.clock
				}
				s.raise(clock)
				_ = old.close() // nothing is lost: this rank has left it
			}
			return m, nil
		}, nil)
		return err
	})
}

// making is the collective making of an object, or its configuring: each rank
// publishes its box, all agree on what it is, connect to each other, and hear
// that everyone has.
type making struct {
	w       *World
	s       *Segment
	object  any    // s, or the vector around it
	what    string // the same on all ranks; who differs is told by it
	mode    mode
	stage   int
	inner   *collective
	joined  chan error
	stop    context.CancelFunc
	ch      *channel
	failure error                       // of this rank, told to all
	finish  func() (*collective, error) // one more collective, if any
	done    func()                      // when all has succeeded
	undo    func()                      // when not
}

// joining is the stage in which another goroutine connects the channel.
const joining = 2

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
		switch m.stage {
		case 0:
			m.publish()
			m.inner = m.w.collective(m.what, outcome(m.failure), &keep{make([][]byte, m.w.size)})
		case joining:
			if done, err := m.join(); !done || err != nil {
				return false, err
			}
			m.inner = m.w.collective(m.what+" (end)", nil, &keep{make([][]byte, m.w.size)})
		case 4:
			if m.finish == nil {
				return true, nil
			}
			var err error
			if m.inner, err = m.finish(); err != nil {
				return false, err
			}
		case 6:
			return true, nil
		default: // 1, 3, 5: in a collective
			if done, err := m.inner.step(); !done || err != nil {
				return false, err
			}
			if err := m.outcomes(); err != nil {
				return false, err
			}
		}
	}
}

// publish makes the channel, unless this rank has failed before.
func (m *making) publish() {
	if m.failure == nil {
		name := fmt.Sprintf("%s/%d/%d", m.s.name, m.s.id, m.w.calls.Load())
		m.ch, m.failure = publishChannel(m.w, name, len(m.s.data), m.mode)
	}
}

// outcome is what a rank tells the others: nothing, or why it failed.
func outcome(err error) []byte {
	if err == nil {
		return nil
	}
	return []byte(err.Error())
}

// outcomes is the error of the first rank that failed, the own one preferred.
func (m *making) outcomes() error {
	k, ok := m.inner.sink.(*keep)
	if m.failure != nil || !ok {
		return m.failure
	}
	for r, text := range k.parts {
		if len(text) > 0 {
			return failf(ErrLeft, "%s: rank %d failed: %s", m.what, r, text)
		}
	}
	return nil
}

// join connects the channel in a goroutine of its own, since that blocks on
// other ranks; its end rings this rank's doorbell. Meanwhile another rank may
// fail: it then gives up the collective that comes next.
func (m *making) join() (bool, error) {
	if m.joined == nil {
		var ctx context.Context
		ctx, m.stop = context.WithCancel(context.Background())
		m.joined = make(chan error, 1)
		go func() {
			m.joined <- m.ch.join(ctx, m.w.t, m.s.stats.Edges)
			m.w.t.Wake()
		}()
	}
	done, err, next := false, error(nil), m.next()
	select {
	case err = <-m.joined:
		m.stop()
		m.joined, done = nil, true
	default:
		err = next.checkReaders()
	}
	if err != nil {
		next.giveUp()
	}
	return done, err
}

// next is the collective that comes after joining.
func (m *making) next() *collective { return m.w.collective(m.what, nil, nil) }

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

func (m *making) waiting() string {
	if m.stage == joining {
		return m.what + ": waited for the other ranks' memory to be announced"
	}
	return m.inner.waiting()
}

// giveUp also tells ranks that are in the next collective of the making.
func (m *making) giveUp() {
	if m.stage == joining {
		m.next().giveUp()
	} else {
		m.inner.giveUp()
	}
	m.abandon()
}

// describeMaking keeps what is compared between ranks, and shown where they
// differ, to a length that fits into a header.
func describeMaking(text string) string {
	const most = 4096
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (sha256 %x)", text[:most/2], sha256.Sum256([]byte(text)))
}
