package codec

import (
	"errors"
	"slices"

	"malt/libmalt/filter"
	"malt/libmalt/spvec"
)

// model sends each row to each reader once in each of its values, however many messages
// were overwritten in between: a message holds the rows that changed since the message
// that the slowest of its readers has folded last, and a reader skips those that it has
// folded from another message. The ack words of the boxes say what was folded, so an
// update that is dropped unfolded is not released.
type model struct {
	rows
	shadow []byte // each row as it was sent last, or agreed upon; mapped
	ledger spvec.Ledger
	sent   []uint64 // by rank, in queues and for a filter that asks: the last message meant for it
	filter filter.Filter
	far    []float64 // room for what the filter judges
}

func (p *model) Repeats() bool { return true }

func (p *model) Settled([]int) {
	p.unname()
	copy(p.shadow, p.m.Data)
	p.ledger.Clear()
}

// Widened puts all rows into the next message.
func (p *model) Widened() {
	p.named, p.disorder = p.named[:0], false
	for r := range p.shape.Rows {
		p.named = append(p.named, uint32(r))
	}
}

func (p *model) Renewed() {
	p.ledger.Clear()
	clear(p.sent)
}

func (p *model) Encode(slot []byte, m Message) (int, spvec.Kind, error) {
	rows := p.due(func(rows []uint32) []uint32 {
		rows = spvec.Changed(rows, p.shape, p.m.Data, p.shadow)
		if !p.filter.On() {
			return rows
		}
		p.far = spvec.Far(p.far, p.filter.Measure(), p.shape, p.m.Data, p.shadow, rows)
		return p.filter.Due(rows, p.far, p.shape, m.Clock, p.filter.Asks() && p.late(m))
	})
	seq := p.m.Head.Load() + 1
	p.ledger.Drop(p.readBy(m, m.Readers, seq))
	p.ledger.Add(rows, seq)
	due, ages := p.ledger.Since(seq, p.readBy(m, m.To, seq))
	if err := p.reserve(m, p.shape.Room(len(due), ages != nil), rows); err != nil {
		return 0, 0, err
	}
	if m.Queue || p.filter.Asks() {
		for _, r := range m.To {
			p.sent[r] = seq
		}
	}
	if ages == nil && len(due) == len(rows) {
		n, kind := spvec.EncodeNew(slot, p.shape, p.m.Data, p.shadow, rows)
		return n, kind, nil
	}
	spvec.Remember(p.shape, p.shadow, p.m.Data, rows)
	n, kind := spvec.Encode(slot, p.shape, p.shadow, due, ages) // not of data: a row may have moved on, and be held back
	return n, kind, nil
}

// late tells whether a receiver of the message has not folded the last one that was meant
// for it, and still will: one that is in a collective call, or has ended, is not waited for.
func (p *model) late(m Message) bool {
	return slices.ContainsFunc(m.To, func(r int) bool {
		away, _ := p.m.Job.IsAway(r)
		return m.Out.Acked(r) < p.sent[r] && !away
	})
}

// readBy is the last message that all of readers have folded, or in queues, where
// nothing is overwritten, will have before they get message seq. Who has died or
// left reads no more.
func (p *model) readBy(m Message, readers []int, seq uint64) uint64 {
	least := seq
	for _, r := range readers {
		if m.Queue {
			least = min(least, p.sent[r])
		} else if acked := m.Out.Acked(r); acked < least && p.m.Job.T.State(r) == nil {
			least = acked
		}
	}
	return least
}

func (p *model) Close() error {
	err := p.rows.Close()
	if p.shadow != nil {
		err = errors.Join(err, p.m.Job.T.Unmap(p.shadow))
		p.shadow = nil
	}
	return err
}
