package box

// Edges of a queue. Where a job goes on when ranks die, a queue can be read by ranks that
// its updates are not for, and whom they are for changes with the view. A reader is served
// on an edge, from a first update to a last. Both ends agree on these, though they go over
// to a view at different times:
//
//	sender, in view v, receivers R:
//	  for r not in R, served: last[r] = seq
//	  view = v; ring every reader
//	  before commit n, for r in R, not served: begun[r] = v:at, at < n, ack[r] >= last[r]:
//	    served; first[r] = n; head = n
//	reader, in view v:
//	  the sender sends to it: begun = v:seen
//	  gather n: head >= n: first <= n, and n <= last or last < first: as in queue.go
//	                       else nothing is for it
//	    it is no receiver, view >= v, last >= first, seen >= last: it reads no more
//	    else wait
//	  it does not read: seen is counted all the same
//
// The n-th gather takes the n-th update on every edge, old or new: a reader counts the
// updates of each sender, whether it reads them or not. So an edge waits for no more than
// if it had been there from the start, and where a graph of all edges makes no ranks wait
// for each other in a ring, edges that begin and end make none.
//
// Nothing is lost: the sender serves a reader only where that will still come to the
// update, and so it has to know where the reader is; and in the view in which it reads,
// for in an older or newer one it may have stopped, and be further. A reader that is no
// receiver any more waits until the sender says so, too: that may be committing an update
// for it. A second edge between the two begins when all of the first has been released, so
// that first and last are those of one edge. A sender that dies before head has served
// nobody with the update, whatever first says; one that is dead says nothing more.
//
// Nobody else waits: not the sender for a reader that it does not serve, since nothing is
// in a slot for it; nor the reader for a sender of which it has passed the head.

// edge is what a reader is served with: updates behind from, up to to.
type edge struct {
	from, to uint64
	told     bool // first says so: there was a commit
}

const open = ^uint64(0) // edge.to

// seqBits is the width of a seq beside a generation, in begun.
const seqBits = 64 - slotBits

// Serve makes the readers in to those of the queue, in the view of that generation, from the
// next commit on, and returns how many of them that is for: the others have not begun to read
// in that view, or are behind it already. It is to be called before the first commit, in
// each view, and again before a commit that may serve more. The readers of the first call
// are served from the first update on: both ends have agreed on them.
func (w *Writer) Serve(view uint64, to []int) (served int) {
	if view != w.view {
		w.settle(view, to)
	}
	for _, r := range to {
		if w.Served(r) || w.begin(r) {
			served++
		}
	}
	return served
}

// Served tells whether the next commit can be for reader r.
func (w *Writer) Served(r int) bool { return w.edges[r].to == open }

// settle ends the edges to readers that are not in to. The exchange orders what it says
// before the look at the bells.
func (w *Writer) settle(view uint64, to []int) {
	keep := make([]bool, len(w.edges))
	for _, r := range to {
		keep[r] = true
	}
	for r := range w.edges {
		switch {
		case w.view == 0 && keep[r]:
			w.edges[r] = edge{to: open}
		case w.view == 0, w.Served(r) && !w.edges[r].told && !keep[r]:
			w.edges[r] = edge{}
		case w.Served(r) && !keep[r]:
			w.edges[r].to = w.seq
			w.control.last(r).Store(w.seq)
		}
	}
	w.view = view
	w.control.view().Swap(view)
	w.ringReaders()
}

// begin begins the edge to reader r with the next commit, if it can.
func (w *Writer) begin(r int) bool {
	begun := w.control.begun(r).Load()
	if begun>>seqBits != w.view || begun&(1<<seqBits-1) > w.seq || w.control.ack(r).Load() < w.edges[r].to {
		return false
	}
	w.edges[r] = edge{from: w.seq, to: open}
	return true
}

// tell says which edges begin with the commit under way.
func (w *Writer) tell() {
	for r := range w.edges {
		if e := &w.edges[r]; e.to == open && !e.told {
			e.told = true
			w.control.first(r).Store(w.seq)
		}
	}
}

// Forget does without reader r, which is dead: what it has not released, and what it has
// pinned, is free.
func (w *Writer) Forget(r int) {
	w.forgotten[r], w.edges[r], w.own[r] = true, edge{}, [2]uint32{}
}

// Begin reads on, or begins to, in the view of that generation: the sender may serve this reader.
func (r *Reader) Begin(view uint64) {
	r.counts, r.reads = true, true
	r.control.begun(r.me).Store(view<<seqBits | r.seen)
}

// Over tells whether the edge has ended, for a reader that is no receiver in the view of
// that generation; then it does not read.
func (r *Reader) Over(view uint64) bool {
	if r.control.view().Load() < view {
		return false
	}
	first, last := r.control.first(r.me).Load(), r.control.last(r.me).Load()
	if first > last || r.seen < last {
		return false
	}
	r.reads = false
	return true
}

// Pass counts the next update, for a reader that does not read: only if it is there, for a
// sender that may not come to it.
func (r *Reader) Pass(there bool) {
	if !there || r.control.head().Load() > r.seen {
		r.seen++
	}
}

// Level counts exactly the updates up to seq as passed; of those that there are.
func (r *Reader) Level(seq uint64) {
	r.seen = min(seq, r.control.head().Load())
	if r.reads {
		r.Release(r.seen)
	}
}

// skip returns update n as one that is not for this reader.
func (r *Reader) skip(n uint64) (h Header, mine, ok bool, err error) {
	r.seen = n
	return Header{Seq: n}, false, true, nil
}

// served tells whether update n, which is there, is on the edge. first and last are looked at
// after head: what they say of n was stored before that.
func (r *Reader) served(n uint64) bool {
	first := r.control.first(r.me).Load()
	last := r.control.last(r.me).Load()
	return first != 0 && first <= n && (n <= last || last < first)
}
