// Package spvec holds sparse updates: some rows of a vector, by ascending index,
// and their values.
//
//	rows := spvec.Changed(nil, shape, data, sent) // what differs from what was sent
//	ledger.Add(rows, seq)
//	rows, ages := ledger.Since(seq, read)         // what the slowest reader has not read
//	n, kind := spvec.Encode(slot, shape, data, rows, ages)
//	…
//	err := got.Decode(kind, message, shape, seq, read)
//	folder.Fold(spvec.Mean, spvec.Keep, shape, own, …)
//
// A row is the values at one index of the vector's first axis: of a vector of one
// axis a single element.
//
// # Messages
//
// The kind of a message stands in the header of its slot, the rest in this
// order, in the byte order of the machine, as the values are:
//
//	kind        count u64   index u32 …          age u32 …      values
//	Dense       -           -                    -              all rows
//	Rows        rows        ascending, to 8 bytes -             of those rows
//	Aged        rows        ascending            one per row    of those rows
//	AgedDense   rows        -                    one per row, to 8 bytes  all rows
//
// An age says how many messages ago the row got its present value: a reader that
// has read that message has folded the row already, and skips it. Where all rows
// are of age 0 none is written. Of kinds that say the same the sender takes the
// shorter one, so that no message is longer than Shape.MaxBytes.
//
// # Caveats
//
// What Decode returns refers to the message, and is valid as long as that is.
// Lists are reused by the next call on the same value.
package spvec
