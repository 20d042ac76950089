package spvec

import "math"

// Ledger is a sender's account of which rows some reader may not have read in
// their present values. Messages are numbered from 1, ascending.
//
// A message to some readers holds the rows that changed after the last message
// which all of these have read, so whoever reads it has, with what it had read,
// all there is: nothing is lost by overwriting a message with a newer one.
type Ledger struct {
	changed []uint64 // by row: the message that its present value was new in; 0: none
	live    []uint32 // ascending: the rows that not all readers are known to have
	first   uint64   // the first message that one of live was added with, and the last
	last    uint64
	spare   []uint32
	ages    []uint32
}

// NewLedger is the account of a vector of so many rows, all of which all have.
func NewLedger(rows int) *Ledger { return &Ledger{changed: make([]uint64, rows)} }

// Add says that rows, which ascend, have new values in message seq.
func (l *Ledger) Add(rows []uint32, seq uint64) {
	l.last = seq
	if len(l.live) == 0 {
		l.first = seq
		l.live = append(l.live, rows...)
		for _, r := range rows {
			l.changed[r] = seq
		}
		return
	}
	merged, i := l.spare[:0], 0
	for _, r := range rows {
		for i < len(l.live) && l.live[i] < r {
			merged = append(merged, l.live[i])
			i++
		}
		if i < len(l.live) && l.live[i] == r {
			i++
		}
		merged = append(merged, r)
		l.changed[r] = seq
	}
	l.live, l.spare = append(merged, l.live[i:]...), l.live
}

// Drop says that all readers have read message seq.
func (l *Ledger) Drop(seq uint64) {
	switch {
	case seq >= l.last:
		l.Clear()
		return
	case seq < l.first:
		return
	}
	kept := l.live[:0]
	for _, r := range l.live {
		if l.changed[r] > seq {
			kept = append(kept, r)
		}
	}
	l.live, l.first = kept, seq+1
}

// Clear says that all readers have all rows.
func (l *Ledger) Clear() { l.live = l.live[:0] }

// Since lists the rows of message seq to readers that have all read message read,
// and their ages; nil if all are of age 0. Both are valid until the next call.
func (l *Ledger) Since(seq, read uint64) (rows, ages []uint32) {
	if l.first == seq && read < seq {
		return l.live, nil
	}
	rows, ages = l.spare[:0], l.ages[:0]
	aged := false
	for _, r := range l.live {
		if c := l.changed[r]; c > read {
			age := min(seq-c, notMentioned-1)
			rows, ages = append(rows, r), append(ages, uint32(age))
			aged = aged || age > 0
		}
	}
	l.spare, l.ages = rows, ages
	if !aged {
		ages = nil
	}
	return rows, ages
}

// notMentioned, in place of an age, says that the row is not in the message. A
// row so old would look younger to a reader, which then folds it once more; no
// reader lags 2³² messages.
const notMentioned = math.MaxUint32
