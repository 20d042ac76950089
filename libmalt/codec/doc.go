// Package codec says what a message of an object is: all of its bytes, or rows of a vector
// and their values.
//
// A Codec belongs to one object of one rank. On the side of the sender it knows what each
// reader has; on that of the reader it makes of messages what a fold needs. The boxes
// (package libmalt) carry the messages and know nothing of rows.
//
// # Rows
//
// A sparse vector sends some of its rows; package spvec has their layout. Its slots could
// hold all rows, and take as much memory as was written into them. The *kind* in the header
// of a slot says whether a message is the whole vector or rows.
//
//   - sparse=model promises that each reader gets each value of a row once, even
//     if updates are overwritten. Each reader publishes the last message that it
//     has *folded*, in the ack word of the box. The sender keeps a ledger of the
//     message in which each row was new. A message holds the rows that are newer
//     than the last message that its slowest reader has folded, with their ages
//     in messages. A reader skips the rows that it has folded from another
//     message. So one message serves all readers, and a reader does not
//     acknowledge an update that ssp drops for its age. In notify-ack, where
//     nothing is overwritten, the last message that was meant for a reader
//     counts instead.
//   - The sender finds new rows by comparing with a copy of the values that it
//     sent, or the caller names them. A fold changes rows as the loop does, so
//     without rows= its changes are passed on along the graph.
//   - In bsp, a receiver that is still folding the last message when the next is
//     written gets its rows in both, and skips them in the second. There the
//     result of a scatter is an upper bound.
//   - sparse=gradient has the same result as whole vectors: a missing row is zero,
//     and messages with most of the rows go as whole vectors.
//
// # Changes
//
// With a fold of changes a message is the total of what its sender has changed since all
// had the same values, each change times the weight of its scatter. A newer total holds the older
// ones, so an update that is overwritten loses nothing, and the newest of each sender counts until
// a newer one has come: a Cumulative codec, whose updates the boxes keep from gather to gather.
// Each rank adds up start, totals and what its loop has changed since, in the order of ranks.
// An era ends where all have the same values again; each message has that of its sender.
package codec
