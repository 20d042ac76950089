// Package box is the data structure in which all updates travel: a sender's newest
// updates, or its last few, in memory that its readers map. It defines every byte of a
// box and every step of its protocol, works on any memory, and is the same under every
// transport.
//
// A box is a control block, which sender and readers write, and slots, which
// only the sender writes. A transport makes the memory and tells others where it
// is; this package does the rest:
//
//	l, err := box.NewLayout(spec, len(readers))
//	// sender: l.ControlBytes of zeroed memory, l.Slots of l.Stride bytes each
//	out, err := box.NewOutbox(end, readers, reserve)   // an rdma.Outbox
//	// each reader, once the sender has announced the box
//	in, err := box.NewInbox(end, index)                // an rdma.Inbox
//
// # Memory map
//
// All words of the control block are 64 bits, read and written through mem.Word.
// Zero is "none" everywhere, so that fresh memory is a valid empty box. The
// fields of a slot's header are little-endian.
//
//	control block
//	    0 +-----------------------------------------------------------+
//	      | magic   digest of Spec   readers   slots                  | maker and size;
//	      | bytes   depth   generation:member   sender's rank         | compared, never trusted
//	   64 +-----------------------------------------------------------+
//	      | clock   left   head   bell of the sender   view           | written by the sender
//	  128 +-----------------------------------------------------------+ reader 0
//	      | latest[0]   latest[1]   published   first   last          | written by the sender
//	  192 | pin   ack   bell of the reader   begun                    | written by reader 0
//	  256 +-----------------------------------------------------------+ reader 1
//	      | …                                                         |
//	      +-----------------------------------------------------------+ queue mode only
//	      | per slot one bit per reader: not meant for it             | written by the sender
//	      +-----------------------------------------------------------+
//
//	slot (64-byte aligned; from 64 KiB on, whole pages)
//	    0 +-----------------------------------------------------------+
//	      | magic 4  format 2  kind 2  generation 4  member 4         |
//	      | seq 8   clock 8   age 8   tag 8   bytes 8   weight 8      |
//	   64 +-----------------------------------------------------------+
//	      | payload …                                                 |
//	      +-----------------------------------------------------------+
//
// The protocol is described beside the code of each step: newest.go, queue.go,
// edges.go for readers of a queue that come and go, and control.go for the words of both
// modes.
//
// # Caveats
//
// Only one Outbox may exist for a box, and one Inbox per reader: each owns the
// words that it writes. One goroutine at a time may use an Outbox or Inbox, except
// for Release in queue mode. Nothing may be called after the memory is unmapped;
// End.Done is the moment to unmap.
//
// Package box checks everything that another process could have written: a word or
// header that does not fit gives rdma.ErrCorrupt, and no access leaves the box.
package box
