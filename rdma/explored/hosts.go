//go:build explore

package explored

import (
	"encoding/binary"
	"math"

	"malt/internal/explore"
	"malt/rdma"
)

// Several hosts. An update for another host comes there through a copy for each reader.
// While the view has the rank, a reader that looks later stands for a copy that lags. Of a rank
// that is left out, each reader has a part of what it sent, in each box another one: no less
// than the reader has seen, and no more than was sent when it looks next. What the rank sends
// later reaches nobody.

// Apart puts the ranks on these hosts.
func (j *Job) Apart(hosts []int) { j.hosts = hosts }

// Cut adds a thread that leaves rank out, at any time, though it lives. The rank does not know,
// and what it sends is lost: a wait of it fails. It comes after the ranks.
func (j *Job) Cut(rank int) {
	j.x.Go("cut", func(*explore.Thread) {
		if j.state(rank).Load() == alive {
			j.view().Store((j.view().Load() + 1<<32) &^ (1 << rank))
			j.ringAll(-1)
		}
	}).Immune()
}

// Expelled tells whether the others have left this rank out. It takes no turn.
func (t *Transport) Expelled() bool {
	return t.job.survive && binary.LittleEndian.Uint64(t.job.words[16*len(t.job.ranks):])>>t.rank&1 == 0
}

// knows is Expelled, of t or another one, as t sees it.
func (t *Transport) knows(of *Transport) bool {
	if t.job.hosts == nil {
		return false
	}
	out := of.Expelled()
	t.thread.Observe(out)
	return out
}

// far is the way of one box to other hosts.
type far struct {
	j      *Job
	sender int
	clocks bool
	sent   []byte   // how far its sender is: a clock, or a seq
	seen   [][]byte // by reader: how far it was, and 1 + what there is once that is final
}

func (j *Job) links(sender int, spec rdma.Spec) *far {
	if j.hosts == nil {
		return nil
	}
	f := &far{j: j, sender: sender, clocks: spec.Mode == rdma.ByClock, sent: j.x.Memory(8)}
	for range j.hosts {
		f.seen = append(f.seen, j.x.Memory(16))
	}
	return f
}

// sends notes that the box is at a clock, or has one more update.
func (f *far) sends(clock uint64) {
	sent := binary.LittleEndian.Uint64(f.sent)
	if f.clocks {
		sent = max(sent, clock)
	} else {
		sent++
	}
	binary.LittleEndian.PutUint64(f.sent, sent)
}

// limit is how far the box is for a reader, which asks.
func (f *far) limit(reader int) uint64 {
	t := f.j.ranks[reader]
	if !t.knows(f.j.ranks[f.sender]) {
		return math.MaxUint64
	}
	seen, final := f.seen[reader][:8], f.seen[reader][8:]
	if binary.LittleEndian.Uint64(final) == 0 {
		from := binary.LittleEndian.Uint64(seen)
		to := max(from, binary.LittleEndian.Uint64(f.sent))
		binary.LittleEndian.PutUint64(final, 1+from+uint64(t.thread.Choose(int(to-from)+1)))
	}
	end := binary.LittleEndian.Uint64(final) - 1
	t.thread.Observe(end)
	return end
}

// sees notes how far a reader was.
func (f *far) sees(reader int, at uint64) {
	seen := f.seen[reader][:8]
	binary.LittleEndian.PutUint64(seen, max(at, binary.LittleEndian.Uint64(seen)))
}

func (f *far) inbox(in rdma.ViewedInbox, rank int) rdma.Inbox {
	return &farInbox{
		ViewedInbox: in,
		limit:       func() uint64 { return f.limit(rank) },
		sees:        func(at uint64) { f.sees(rank, at) },
	}
}

// farOutbox is the sending end of a box that has readers on other hosts.
type farOutbox struct {
	rdma.ViewedOutbox
	sends func(clock uint64)
}

func (o *farOutbox) Commit(n int, s rdma.Stamp, to []int) error {
	err := o.ViewedOutbox.Commit(n, s, to)
	o.sends(s.Clock)
	return err
}

func (o *farOutbox) Advance(clock uint64) error {
	err := o.ViewedOutbox.Advance(clock)
	o.sends(clock)
	return err
}

// farInbox is the end on another host.
type farInbox struct {
	rdma.ViewedInbox
	last  uint64 // seq, of a queue
	limit func() uint64
	sees  func(at uint64)
}

func (i *farInbox) Next() (u rdma.Update, ok bool, err error) {
	if i.last >= i.limit() {
		return u, false, nil
	}
	if u, ok, err = i.ViewedInbox.Next(); ok {
		i.last = u.Seq
		i.sees(u.Seq)
	}
	return u, ok, err
}

func (i *farInbox) At(clock uint64) (u rdma.Update, ok bool, err error) {
	if u, ok, err = i.ViewedInbox.At(min(clock, i.limit())); ok {
		i.sees(u.Clock)
	}
	return u, ok, err
}

func (i *farInbox) Clock() (uint64, error) {
	end := i.limit()
	clock, err := i.ViewedInbox.Clock()
	clock = min(clock, end)
	i.sees(clock)
	return clock, err
}
