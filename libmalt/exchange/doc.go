// Package exchange moves the parts of an array between hosts so that each ends with
// the combination of what all have: every host adds up one share of it, of what the
// others send, and sends the result back. It is staged and driven by calls: whoever
// uses it says what its host has, how parts are added up, and when to go on; package
// exchange plans, cuts, sends and receives.
//
//	p := exchange.NewPlan(bytes, 64, hosts)                  // the same on all ranks
//	x, err := exchange.Publish(ctx, t, "v", p, rank)         // the boxes of this rank
//	err = x.Join(ctx)                                        // those of the others
//	x.Begin(clock, stamp)
//	err = x.Step(work)                                       // as far as it goes; again at each ring
//	x.Complete()                                             // then Each has all of it
//
// # Which rank does what
//
// The array is cut into one share per host, and each share at the places where any
// host divides it among its ranks. So each segment has one rank on each host that
// handles it. The host whose share it lies in owns it: the handlers of the others
// send theirs to the owner, which adds up in the order of hosts, and sends the sum to
// all of them. All ranks of a host send and receive, over connections of their own,
// and between hosts pass 2(H-1)/H times the array per host, as few bytes as can be.
//
// # What is sent when
//
// What a host has goes in chunks through a queue, so that the owner adds up while
// the rest is on its way, and a sender waits for room; or where it is one chunk, as
// the newest update of a box. The sum of a segment goes in up to four pieces, each when
// it is whole, as the newest update of a box of its own: sending it waits for nobody,
// and a link whose parts are late is busy with sums. So a rank that has received what
// its sums are made of can do the rest of its sending at once, and is Finished: nobody
// waits for it any longer. And nobody is Complete before all ranks are Finished, where
// every rank owns something.
//
// An exchange that some rank gives up leaves parts in queues. They carry the number
// of their exchange, and are dropped at the next one. A number must be greater than
// those before; no rank may begin one before all ranks have begun, or will never
// step, the one before it.
package exchange
