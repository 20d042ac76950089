package spvec

import "math"

// Ledger is a sender's account of which rows some reader may not have read in
// their present values. Messages are numbered from 1, ascending.
//
// A message to some readers holds the rows that changed after the last message
// which all of these have read, so whoever reads it has, with what it had read,
// all there is: nothing is lost by overwriting a message with a newer one.
//
// It is as long as what is unread, and is read and written in order: nothing is
// looked up by row. The zero value is ready: all readers have all rows.
type Ledger struct {
	live  account
	first uint64 // the first message that one of live was added with, and the last
	last  uint64
	spare account
	ages  []uint32
}

// account is some rows, ascending, and the message that each one's present value
// was new in. Where that is the last for all of them, seqs is empty.
type account struct {
	rows []uint32
	seqs []uint64
}

func (a *account) add(row uint32, seq uint64) {
	a.rows, a.seqs = append(a.rows, row), append(a.seqs, seq)
}

func (a *account) clear() { a.rows, a.seqs = a.rows[:0], a.seqs[:0] }

// Add says that rows, which ascend, have new values in message seq.
func (l *Ledger) Add(rows []uint32, seq uint64) {
	old := l.last
	l.last = seq
	if len(l.live.rows) == 0 {
		l.first = seq
		l.live.rows, l.live.seqs = append(l.live.rows, rows...), l.live.seqs[:0]
		return
	}
	if len(l.live.seqs) == 0 {
		for range l.live.rows {
			l.live.seqs = append(l.live.seqs, old)
		}
	}
	was, merged, i := l.live, l.spare, 0
	merged.clear()
	for _, r := range rows {
		for i < len(was.rows) && was.rows[i] < r {
			merged.add(was.rows[i], was.seqs[i])
			i++
		}
		if i < len(was.rows) && was.rows[i] == r {
			i++
		}
		merged.add(r, seq)
	}
	merged.rows, merged.seqs = append(merged.rows, was.rows[i:]...), append(merged.seqs, was.seqs[i:]...)
	l.live, l.spare = merged, was
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
	// One of live is older than the last message, so each has its own.
	kept := account{l.live.rows[:0], l.live.seqs[:0]}
	for i, c := range l.live.seqs {
		if c > seq {
			kept.add(l.live.rows[i], c)
		}
	}
	l.live, l.first = kept, seq+1
}

// Clear says that all readers have all rows.
func (l *Ledger) Clear() { l.live.clear() }

// Since lists the rows of message seq to readers that have all read message read,
// and their ages; nil if all are of age 0. Both are valid until the next call.
func (l *Ledger) Since(seq, read uint64) (rows, ages []uint32) {
	if l.first == seq && read < seq {
		return l.live.rows, nil
	}
	rows, ages = l.spare.rows[:0], l.ages[:0]
	aged := false
	for i, c := range l.live.seqs {
		if c > read {
			age := min(seq-c, notMentioned-1)
			rows, ages = append(rows, l.live.rows[i]), append(ages, uint32(age))
			aged = aged || age > 0
		}
	}
	l.spare.rows, l.ages = rows, ages
	if !aged {
		ages = nil
	}
	return rows, ages
}

// notMentioned, in place of an age, says that the row is not in the message. A
// row so old would look younger to a reader, which then folds it once more; no
// reader lags 2³² messages.
const notMentioned = math.MaxUint32
