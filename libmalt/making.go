package libmalt

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"malt/graphs"
	"malt/internal/say"
	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/libmalt/narrow"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// makeObject makes s, which is part of v unless that is nil.
func (w *World) makeObject(ctx context.Context, s *Object, v *Vector, name, options string, bytes int, shape string, init func()) error {
	if s.kind, s.Kind = newSegment, "segment"; v != nil {
		s.kind, s.Kind = newVector, "vector"
	}
	mode, err := w.checked(name, options, s.kind)
	if mode.keyed = v != nil && v.keyed; err == nil && mode.keyed {
		err = mode.checkIDs()
	}
	if err == nil {
		err = cmp.Or(w.lasts(mode), w.replaceable(mode, v != nil))
	}
	if err != nil {
		return err
	}
	var rows spvec.Shape
	if v != nil {
		switch {
		case mode.wire != narrow.Exact && slices.ContainsFunc(v.runs, func(r reduce.Run) bool { return r.Type != v.runs[0].Type }):
			return say.Errorf(ErrInvalid, "wire=%s goes with arrays of one type, got float32 and float64", mode.wire).Try("Make a vector of each type.")
		case mode.keyed:
			rows = v.rows
		case mode.sparse == codec.Dense && v.inRows:
			return say.Errorf(ErrInvalid, "an array has row set, but its vector is not sparse").Try("Leave row at 0, or make the vector with sparse=model or sparse=gradient.")
		case mode.sparse != codec.Dense && v.dense != nil:
			return v.dense
		case mode.sparse != codec.Dense:
			rows = v.rows
			shape += fmt.Sprintf(" in rows of %d", rows.Width)
		}
	}
	with := shape + " " + mode.agreed()
	if name != "" {
		with = fmt.Sprintf("%q, %s", name, with)
	}
	what := core.OpOf("malt."+strings.ToUpper(s.Kind[:1])+s.Kind[1:], with, nil)
	return w.job.Run(ctx, what, func() (core.Stepper, error) {
		if s.Unnamed = name == ""; s.Unnamed {
			w.unnamed[s.Kind]++
			name = fmt.Sprintf("%s-%d", s.Kind, w.unnamed[s.Kind])
		}
		s.Number(w.job, uint32(w.job.Calls()+1), name)
		s.w = w
		s.mode.Store(&mode)
		m := &making{w: w, again: w.again != nil && w.again.donor >= 0}
		if !mode.startOwn && !mode.keyed || m.again {
			m.values = v
		}
		err := s.travel(v, rows, bytes)
		m.way = s.way
		if err == nil {
			err = w.tape.makes(what)
		}
		if err == nil {
			memory := s.way.Memory()
			if m.heir() {
				memory = v.of.w.job.Mapping(&v.of.Member)
				s.Counts.Edges = slices.Clone(v.of.Counts.Edges)
				s.SetClock(v.of.Clock())
			}
			err = w.job.Alloc(&s.Member, memory, bytes)
		}
		if err == nil && m.heir() {
			m.undo = func() { w.job.Cede(&s.Member) }
		} else if err == nil {
			init()
			m.undo = func() {
				_ = w.job.Disown(&s.Member)
				_ = w.Unmap(s.Base)
			}
		}
		m.start(what, mode, err)
		m.done = func() {
			if m.again {
				s.SetClock(largest(m.clocks.parts))
			}
			s.way.Use(m.part.View())
			s.Open = true
			w.job.Enlist(&s.Member)
		}
		return m, nil
	})
}

// Check is what NewVector says of a name and options, if it refuses them. It is
// not collective.
func (w *World) Check(name, options string) error {
	_, err := w.checked(name, options, newVector)
	return err
}

// checked is the mode that options ask for, of a new object of that name.
func (w *World) checked(name, options string, of takers) (mode, error) {
	if err := checkName(name); err != nil {
		return mode{}, err
	}
	m, err := defaultMode(w.job.Size)
	if err == nil {
		m, err = m.with(options, w.job.Size, of)
	}
	if each := w.job.Hosts.Even(); err == nil && each > 0 && m.Graph.String() == "butterfly" {
		m.Graph, err = graphs.Parse(graphs.Butterfly(each, w.job.Size/each), w.job.Size)
	}
	return m, err
}

// lasts fails for a mode that cannot go on when ranks die, where this job does, or that cannot be
// recorded where it is.
func (w *World) lasts(m mode) error {
	switch {
	case m.fold.Changes() && m.Graph.OfChanges() && w.job.Tape != nil:
		return say.Errorf(ErrUnsupported, "fold=%s on graph=%s can be neither recorded nor replayed", m.fold, m.Graph).
			Try("Take graph=all, or leave MALT_RECORD and MALT_REPLAY out.")
	case m.filter.Asks() && w.job.Tape != nil:
		return say.Errorf(ErrUnsupported, "filter=%s can be neither recorded nor replayed", m.filter).
			At("what it holds back depends on when receivers fold").
			Try("Take a filter with one number, or leave MALT_RECORD and MALT_REPLAY out.")
	case m.keyed && w.job.Survives():
		return say.Errorf(ErrUnsupported, "a vector with ids cannot go on when ranks die").
			At("a dead rank's rows are lost, and its part of the others'").Try("Take on_death=stop, the default.")
	case m.fold.Changes() && m.Graph.OfChanges() && w.job.Survives() && !(m.Graph.Workers() && len(w.job.T.Near()) == w.job.Size):
		return say.Errorf(ErrUnsupported, "fold=%s on graph=%s cannot go on when ranks die", m.fold, m.Graph).
			At("graph=shards:1 on one machine can, while rank 0 lives").Try("Take graph=all, or on_death=stop.")
	case !w.job.Settles():
		return nil
	case m.Lasts(w.job.Size):
		return nil
	}
	return say.Errorf(ErrUnsupported, "%s on graph %s cannot go on when ranks die, in a job on several hosts", m.Rule, m.Graph).
		Try("Take graph=all, another consistency, or on_death=stop.")
}

// Configure changes what options name: graph, allow_disconnected, consistency
// and, of a vector, fold. Collective; what was unseen counts as seen. On an
// error s is as it was.
func (s *Object) Configure(ctx context.Context, options string) error {
	of := openSegment
	if s.kind == newVector {
		of = openVector
	}
	return s.Alone(func() error {
		mode, err := s.mode.Load().with(options, s.Job.Size, of)
		if err == nil {
			s.w.keepsOut("v.configure", beforeSync|afterSync)
			err = cmp.Or(s.w.lasts(mode), s.w.replaceable(mode, s.kind == newVector))
		}
		if err != nil {
			return err
		}
		what := core.OpOf(s.Called("configure"), mode.agreed(), &s.Member)
		return s.Job.Run(ctx, what, func() (core.Stepper, error) {
			m := &making{w: s.w, way: s.way}
			m.start(what, mode, nil)
			m.part.Within(&s.Member)
			m.done = func() {
				s.way.Use(m.part.View())
				s.mode.Store(&mode)
			}
			return m, nil
		})
	})
}

// making is the collective making of an object, or its configuring: each rank
// publishes its box, all agree on what it is, connect to each other, and hear
// that everyone has. It is one collective call in two or three parts.
type making struct {
	w      *World
	way    way
	values *Vector // gets rank 0's values; nil: every rank has its own
	stage  int
	part   *core.Collective // under way; while joining the one to come
	told   *keep            // by the first part
	joined chan error
	stop   context.CancelFunc
	found  *rdma.PeerError // a death, in connecting, on which the transport had yet to decide
	begun  uint64          // the generation of the view in which it connects
	again  bool            // ranks are back: those that are left have the vector already
	clocks keep            // of these: what it has there

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

// start publishes this rank's box, unless making has failed already.
func (m *making) start(what string, mode mode, failure error) {
	m.failure = failure
	if m.failure == nil {
		m.failure = m.way.Publish(mode.Mode, mode.agreed())
	}
	m.told = &keep{} // nothing, or why a rank failed
	m.part = m.w.job.Collective(what, nil, nil, m.told)
	m.part.InParts()
	if m.failure != nil {
		m.part.Data = m.part.Reason(m.failure)
	}
}

func (m *making) Step() (bool, error) {
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
				m.part.Fail(err)
			}
			if !done || err != nil {
				return false, err
			}
			continue
		}
		if done, err := m.part.Step(); !done || err != nil {
			return false, err
		}
		switch {
		case m.stage == agreeing:
			if err := m.outcomes(); err != nil {
				m.part.End() // as on all ranks
				return false, err
			}
			m.part = m.part.Next(m.clock(), &m.clocks, m.values == nil)
		case m.part.Last():
			return true, nil
		default:
			m.part = m.part.Next(nil, m.fill(), true)
		}
	}
}

// heir tells whether what is made takes the place of a vector in the world before.
func (m *making) heir() bool { return m.values != nil && m.values.of != nil }

// clock is that of the vector which it takes the place of.
func (m *making) clock() []byte {
	if !m.heir() {
		return nil
	}
	return binary.LittleEndian.AppendUint64(nil, m.values.Clock())
}

// fill has the ranks get the values of rank 0, and new processes those of a rank that is left.
func (m *making) fill() core.Sink {
	if m.again {
		return &fill{root: m.w.again.donor, has: m.heir(), dst: m.values.Data}
	}
	return &fill{fresh: true, dst: m.values.Data}
}

// outcomes is the error of the first rank that failed, the own one preferred.
func (m *making) outcomes() error {
	if m.failure != nil {
		return m.failure
	}
	for r, reason := range m.told.parts {
		if len(reason) > 0 {
			return m.part.ReadReason(r, reason)
		}
	}
	return nil
}

// join connects the channel in a goroutine of its own, since that blocks on
// other ranks; its end rings this rank's doorbell. Meanwhile another rank may
// give up.
func (m *making) join() (bool, error) {
	if m.w.job.Size == 1 {
		err := m.way.Join(context.Background())
		return err == nil, err
	}
	if m.found != nil && m.w.job.Undecided(m.found) {
		return false, m.part.Look()
	}
	m.found = nil
	if m.joined == nil {
		m.begun = m.w.job.Adopt().Generation
		var ctx context.Context
		ctx, m.stop = context.WithCancel(context.Background())
		m.joined = make(chan error, 1)
		go func() {
			m.joined <- m.way.Join(ctx)
			m.w.job.T.Wake()
		}()
	}
	select {
	case err := <-m.joined:
		m.stop()
		m.joined = nil
		if errors.Is(err, context.Canceled) && m.overtaken() {
			return m.join()
		}
		var dead *rdma.PeerError
		if errors.As(err, &dead) && (m.w.job.Undecided(dead) || core.LeftOut(m.w.job.T, dead.Rank)) {
			m.found = dead // connects again, once that is decided: now, perhaps, and then nobody rings
			return m.join()
		}
		if errors.Is(err, rdma.ErrLeft) || errors.As(err, &dead) {
			err = cmp.Or(m.part.Look(), err) // in the words of the call
		}
		if err == nil {
			err = m.part.Refresh()
		}
		return err == nil, err
	default:
		if m.overtaken() {
			m.stop()
		}
		return false, m.part.Look()
	}
}

// overtaken tells whether there is a newer view than that in which this rank connects. Others
// may do without a part of the connection there, so this rank would wait for them in vain.
func (m *making) overtaken() bool { return m.w.job.Adopt().Generation != m.begun }

// abandon undoes what there is; the others have been told already.
func (m *making) abandon() {
	if m.joined != nil {
		m.stop()
		<-m.joined
	}
	if m.way != nil {
		m.way.Abandon()
	}
	if m.undo != nil {
		m.undo()
	}
}

func (m *making) Name() string { return m.part.Name() }

func (m *making) Late() []int { return m.part.Late() }

func (m *making) Waiting() core.Wait {
	if m.stage == joining && len(m.part.Late()) == 0 {
		return core.Wait{Call: m.Name(), Whom: "the memory of the other ranks, to map it"}
	}
	return m.part.Waiting()
}

func (m *making) GiveUp() {
	m.part.GiveUp()
	m.abandon()
}
