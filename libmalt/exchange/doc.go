// Package exchange combines an array over hosts: every host adds up one share of
// it, from the values that the others send, and sends the result back. It works
// in steps that the caller drives. The caller provides the values of its host and
// the function that adds up parts, and says when to continue; package exchange
// plans, cuts, sends and receives.
//
//	p := exchange.NewPlan(bytes, 64, hosts)                  // the same on all ranks
//	x, err := exchange.Publish(ctx, t, "v", p, rank)         // the boxes of this rank
//	err = x.Join(ctx)                                        // those of the others
//	x.Begin(clock, stamp)
//	err = x.Step(work)                                       // as far as it goes; again at each ring
//	x.Complete()                                             // then Each has all of it
//
// # Shares and segments
//
// The array is cut into one share per host. Each share is cut again wherever any
// host divides it among its ranks, so each segment has one handling rank on each
// host. The host whose share a segment lies in owns it. The handlers on the other
// hosts send their values to the owner, which adds them up in the order of hosts
// and sends the sum to all of them. All ranks of a host send and receive, over
// their own connections. Each host sends 2(H-1)/H times the array, which is the
// minimum.
//
// # Order of sending
//
// A host sends its values in chunks through a queue, so that the owner adds up
// while the rest is in flight, and a sender waits for room. A single chunk goes as
// the newest update of a box. The sum of a segment goes in up to four pieces, each
// when it is whole, as the newest update of its own box. Sending a piece waits for
// no rank, and a link whose parts are late carries sums meanwhile. So a rank that
// has received everything that its sums need can send the rest at once, and is
// Finished: no rank waits for it any longer. If every rank owns something, no rank
// is Complete before all ranks are Finished.
//
// If a rank gives up an exchange, parts stay in queues. They carry the number of
// their exchange, and the next exchange drops them. Numbers must increase. No rank
// may begin an exchange before all ranks have begun the one before it, or will
// never step it again.
package exchange
