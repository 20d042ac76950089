package engine

import (
	"context"
	"slices"

	"malt/internal/say"
	"malt/libmalt/boxes"
	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
)

// Together is the body of an object whose ranks meet in each sync.
type Together struct {
	carried
	Meeting core.Meeting
}

// Meet is for an object that m carries.
func Meet(of *core.Member, m core.Meeting) *Together {
	return &Together{carried{Member: of, carrier: m}, m}
}

func (b *Together) Use(core.View)                                  { b.used = true }
func (b *Together) Settled([]int)                                  {}
func (b *Together) Share(float64) (data []byte, since uint64)      { return nil, 0 }
func (b *Together) Inherit([]int) error                            { return nil }
func (b *Together) Age() uint64                                    { return 0 }
func (b *Together) Writers(late []int) []int                       { return late }
func (b *Together) AllReduce(core.Call, reduce.Op) core.Stepper    { return nil }
func (b *Together) Gather(context.Context, reduce.Op) (int, error) { return 0, b.apart("gather") }

// CatchUp carries out what a collective call has asked for.
func (b *Together) CatchUp() {
	if l := b.Levelled(); l != nil && b.used {
		b.SetClock(max(b.Clock(), l.Clock))
	}
}

func (b *Together) Send(context.Context, int, []int64, []int, float64) (int, error) {
	return 0, b.apart("scatter")
}

// Begin is of a gather.
func (b *Together) Begin(context.Context) ([]codec.Update, error) { return nil, b.apart("gather") }

func (b *Together) apart(method string) error {
	return say.Errorf(core.ErrUnsupported, "%s: a vector with ids has no %s", b.Called(method), method).
		At("its ranks meet, and both send and receive").Try("Call sync() on all ranks.")
}

// Sync is a collective call.
func (b *Together) Sync(ctx context.Context, rows []int64, weight float64, slack int, _ reduce.Op) (int, error) {
	refused := func(option string, value any, do string) (int, error) {
		return 0, say.Errorf(core.ErrInvalid, "%s: %s=%v does not go with ids=", b.Called("sync"), option, value).Try("%s", do)
	}
	switch {
	case rows != nil:
		return 0, b.withRows("sync")
	case boxes.CheckWeight(weight) != nil:
		return 0, boxes.CheckWeight(weight)
	case weight != 1:
		return refused("weight", weight, "Leave it out, and multiply the rows by it before the sync.")
	case slack >= 0:
		return refused("slack", slack, "Leave it out: all ranks wait for each other.")
	}
	err := b.Alone(func() error {
		op := core.OpOf(b.Called("sync"), "", b.Member)
		return b.Job.Run(ctx, op, func() (core.Stepper, error) {
			c := b.Job.Collective(op, b.Member, nil, nothing{})
			c.InParts()
			b.Meeting.Begin(c.Number())
			return &meeting{Collective: c, b: b}, nil
		})
	})
	return len(b.Job.View().Ranks) - 1, err
}

// meeting is a sync. Its headers, by which the ranks know that all make it, travel beside what the
// carrier exchanges.
type meeting struct {
	*core.Collective
	b   *Together
	met bool // the headers of all ranks have come
}

// Counts implements core.Booked.
func (m *meeting) Counts() *core.Stats { return &m.b.Member.Counts }

func (m *meeting) Step() (done bool, err error) {
	if !m.met {
		if m.met, err = m.Collective.Step(); err != nil {
			return false, err
		}
	}
	if done, err = m.b.Meeting.Step(); err == nil && !done {
		done, err = m.orGone()
	}
	switch {
	case err != nil:
		m.Fail(err)
		return false, err
	case !done || !m.met:
		return false, nil
	}
	m.b.Meeting.Finish()
	m.End()
	m.b.SetClock(m.b.Clock() + 1)
	m.b.Changed()
	m.b.Counts.Scatters++
	m.b.Counts.Gathers++
	return true, nil
}

// orGone looks whether a rank has given the call up, or has left while the carrier lacks it. What it
// had sent before counts.
func (m *meeting) orGone() (done bool, err error) {
	gone, rank := error(nil), 0
	for _, rank = range m.Ranks() {
		if rank != m.Job.Rank {
			if gone = m.Gone(rank, m.lacks(rank)); gone != nil {
				break
			}
		}
	}
	if gone == nil {
		return false, nil
	}
	if done, err = m.b.Meeting.Step(); err == nil && !done && m.Gone(rank, m.lacks(rank)) != nil {
		err = m.Because(rank, gone)
	}
	return done, err
}

func (m *meeting) lacks(rank int) bool { return slices.Contains(m.b.Meeting.Late(), rank) }

// Late are the ranks that are not in the call, or else those whose rows are missing.
func (m *meeting) Late() []int {
	if late := m.Collective.Late(); !m.met && len(late) > 0 {
		return late
	}
	return m.b.Meeting.Late()
}

func (m *meeting) Waiting() core.Wait { return m.b.Waiting(m.Name(), m.Late()) }

// nothing is the data of a call that has none besides its headers.
type nothing struct{}

func (nothing) Begin(*core.Collective) error                             { return nil }
func (nothing) Chunk(*core.Collective, int, int, []byte) bool            { return false }
func (nothing) Finish(*core.Collective)                                  {}
func (nothing) Result() [][]byte                                         { return nil }
func (nothing) Give(*core.Collective, []int, []uint64) ([][]byte, error) { return nil, nil }

// Expect: a header that says otherwise is not of this call.
func (nothing) Expect(rank int, total uint64) error {
	if total != 0 {
		return say.Errorf(core.ErrUnsupported, "rank %d sends %d bytes, expected none", rank, total)
	}
	return nil
}
