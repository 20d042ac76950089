package rdmatest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"malt/rdma"
)

var scheduleCases = []testCase{
	{"G3 torn stress", 2, tornStress},
	{"G2 G3 random schedule, newest", 2, func(j *job) { schedule(j, rdma.Newest) }},
	{"G2 G3 random schedule, queue of 1", 2, func(j *job) { schedule(j, rdma.Queue(1)) }},
	{"G2 G3 random schedule, queue of 3", 2, func(j *job) { schedule(j, rdma.Queue(3)) }},
}

// tornStress is G3: a sender that never pauses, readers that never sleep. The
// payload is small, so that a reader is often between its looks when its slot
// would be taken.
func tornStress(j *job) {
	const updates, bytes = 10_000, 64
	out, in := j.star(rdma.Spec{Bytes: bytes})
	j.every(func(r int) error {
		if r == 0 {
			for c := uint64(1); c <= updates; c++ {
				if full, err := put(out, 0, c, bytes, nil); full || err != nil {
					return fmt.Errorf("clock %d: full %v, error %v", c, full, err)
				}
			}
			return nil
		}
		for seen := uint64(0); seen < updates; {
			u, ok, err := in[r].Next()
			if err != nil {
				return err
			}
			if !ok {
				runtime.Gosched()
				continue
			}
			if u.Seq <= seen {
				return fmt.Errorf("seq %d after %d", u.Seq, seen)
			}
			seen = u.Seq
			if err := intact(u, 0, bytes); err != nil {
				return err
			}
		}
		return nil
	})
}

// history is what every sender has scattered, for comparison afterwards:
// to[sender][seq-1] has a bit per reader.
type history struct {
	mu sync.Mutex
	to [][]uint64
}

// schedule lets all ranks scatter to random subsets and look at random times,
// all to all, each in its own goroutine. In newest mode a reader may miss what
// was overwritten, never the last; in queue mode nothing.
func schedule(j *job, mode rdma.Mode) {
	const updates = 400
	spec := rdma.Spec{Bytes: 1 << 10, Mode: mode}
	h := &history{to: make([][]uint64, j.n())}
	got := make([][]int, j.n()) // by rank: updates got, by sender
	j.every(func(r int) error {
		t, random := j.ranks[r], rand.New(rand.NewPCG(uint64(mode), uint64(r)))
		out, err := t.Publish(j.ctx, "random", spec, j.others(r))
		if err != nil {
			return err
		}
		ins, err := t.Subscribe(j.ctx, "random", spec, j.others(r))
		if err != nil {
			return err
		}
		// Only who has mapped a box can drain it: nobody may leave before that.
		if _, err := t.Words(j.ctx, "all have subscribed", 0); err != nil {
			return err
		}
		readers := make([]*checker, len(ins))
		for i, in := range ins {
			readers[i] = &checker{in: in, me: r, queue: mode.Depth() > 0, h: h}
		}
		got[r] = make([]int, j.n())
		for c := uint64(1); c <= updates; {
			sent := false
			if err := waitFor(j, t, func() (bool, error) {
				if sent, err = scatterSome(h, out, r, j.others(r), c, random); sent || err != nil {
					return true, err
				}
				for _, k := range readers { // full: look, so that nobody waits in a circle
					if err := k.look(1); err != nil {
						return false, err
					}
				}
				return false, nil
			}); err != nil {
				return fmt.Errorf("clock %d: %w", c, err)
			}
			c++
			for range random.IntN(3) {
				if err := readers[random.IntN(len(readers))].look(random.IntN(3)); err != nil {
					return err
				}
			}
		}
		if err := out.Close(); err != nil {
			return err
		}
		// Drain: until every sender has left and has nothing more.
		err = waitFor(j, t, func() (bool, error) {
			all := true
			for _, k := range readers {
				_, left := k.in.Clock() // before Next: see rdma.Inbox
				if err := k.look(1 << 30); err != nil {
					return false, err
				}
				all = all && left != nil
			}
			return all, nil
		})
		for _, k := range readers {
			got[r][k.in.From()] = k.got
			if err == nil {
				err = k.finish()
			}
		}
		return err
	})
	for r := range j.n() {
		for _, sender := range j.others(r) {
			traffic := j.ranks[r].Traffic(sender)
			if traffic.ReceivedMessages != uint64(got[r][sender]) {
				j.Errorf("rank %d got %d from %d and counted %d", r, got[r][sender], sender, traffic.ReceivedMessages)
			}
		}
	}
}

// scatterSome sends clock c to a random subset of readers, or to all.
func scatterSome(h *history, out rdma.Outbox, sender int, readers []int, c uint64, random *rand.Rand) (sent bool, err error) {
	b, err := out.Begin()
	if b == nil || err != nil {
		return false, err
	}
	n := random.IntN(len(b) + 1)
	pattern(b[:n], sender, c)
	bits, to := ^uint64(0), []int(nil)
	if random.IntN(2) == 0 {
		bits, to = random.Uint64(), []int{}
		for _, r := range readers {
			if bits>>r&1 == 1 {
				to = append(to, r)
			}
		}
	}
	h.mu.Lock()
	h.to[sender] = append(h.to[sender], bits)
	h.mu.Unlock()
	return true, out.Commit(n, stamp(sender, c), to)
}

// checker is a reader that compares what it gets with what was sent. Seq and
// clock are the same here.
type checker struct {
	in    rdma.Inbox
	me    int
	queue bool
	h     *history
	got   int    // updates that were meant for it
	seen  uint64 // seq of the last
}

// look takes at most n updates.
func (k *checker) look(n int) error {
	for range n {
		u, ok, err := k.in.Next()
		if !ok || err != nil {
			return err
		}
		if u.Seq <= k.seen || u.Seq != u.Clock || k.queue && u.Seq != k.seen+1 {
			return fmt.Errorf("rank %d: seq %d clock %d after seq %d: repeated or lost", k.in.From(), u.Seq, u.Clock, k.seen)
		}
		k.seen = u.Seq
		mine := k.meant(u.Seq)
		if mine != (u.Data != nil) || !mine && !k.queue {
			return fmt.Errorf("rank %d: seq %d is meant for this rank: %v, has data: %v", k.in.From(), u.Seq, mine, u.Data != nil)
		}
		if mine {
			k.got++
			if err := intact(u, k.in.From(), len(u.Data)); err != nil {
				return err
			}
		}
		if k.queue || u.Seq%3 == 0 { // in newest mode some are held until the next
			k.in.Release(u.Seq)
		}
	}
	return nil
}

func (k *checker) meant(seq uint64) bool {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	return k.h.to[k.in.From()][seq-1]>>k.me&1 == 1
}

// finish asserts, after the sender has left, that the last update meant for this
// reader was got, and in queue mode all of them.
func (k *checker) finish() error {
	k.h.mu.Lock()
	sent := k.h.to[k.in.From()]
	k.h.mu.Unlock()
	last, mine := uint64(0), 0
	for i, bits := range sent {
		if bits>>k.me&1 == 1 {
			last, mine = uint64(i)+1, mine+1
		}
	}
	switch {
	case k.queue && (k.seen != uint64(len(sent)) || k.got != mine):
		return fmt.Errorf("rank %d sent %d updates, %d of them to rank %d, which got %d up to seq %d", k.in.From(), len(sent), mine, k.me, k.got, k.seen)
	case !k.queue && k.seen != last:
		return fmt.Errorf("the last update of rank %d to %d was seq %d; it got seq %d", k.in.From(), k.me, last, k.seen)
	case k.in.Published() != uint64(mine):
		return fmt.Errorf("rank %d published %d updates to %d, and says %d", k.in.From(), mine, k.me, k.in.Published())
	}
	return nil
}
