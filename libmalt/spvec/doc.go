// Package spvec encodes, decodes and folds sparse updates: some rows of a vector, by
// ascending index, and their values.
//
//	rows := spvec.Changed(nil, shape, data, sent) // the rows that differ from those sent
//	ledger.Add(rows, seq)
//	rows, ages := ledger.Since(seq, read)         // the rows that the slowest reader has not read
//	n, kind := spvec.Encode(slot, shape, data, rows, ages)
//	…
//	err := got.Decode(kind, message, shape, seq, read)
//	folder.Fold(spvec.Mean, spvec.Keep, shape, own, …)
//
// A row is the values at one index of the vector's first axis; in a vector with one
// axis, a single element.
//
// # Messages
//
// The header of a slot has the kind of its message. The rest follows in this order,
// in the byte order of the machine, as the values do:
//
//	kind        count u64   index u32 …          age u32 …      values
//	Dense       -           -                    -              all rows
//	Rows        rows        ascending, to 8 bytes -             of those rows
//	Aged        rows        ascending            one per row    of those rows
//	AgedDense   rows        -                    one per row, to 8 bytes  all rows
//
// The age of a row is the number of messages since it got its present value. A reader
// that has read that message has folded the row already, and skips it. If all rows
// have age 0, no ages are written. If several kinds fit, the sender takes the
// shortest, so no message is longer than Shape.MaxBytes.
//
// # Caveats
//
// The result of Decode refers to the message, and is valid as long as the message is.
// The next call on the same value reuses lists.
package spvec
