package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// Host is this rank's place among the ranks of one machine. Its methods may be
// called by several goroutines, also after Close.
type Host struct {
	cfg      Config
	job      string
	members  []int // ranks of this machine
	listen   *net.UnixListener
	listenFd int

	page     page
	pageFile *mem.File // the first member's: handed to whoever arrives
	guard    mem.Guard // of page

	regions regions
	deaths  *deaths
	exits   *exits

	least     atomic.Int64              // ranks with which the job goes on; 0: it ends with the first death
	proposing sync.Mutex                // page.propose
	known     atomic.Pointer[rdma.View] // the last that latest has made
	enough    atomic.Pointer[rdma.View] // the last of these that had enough ranks
	onDeath   atomic.Pointer[func()]    // tells of a death, where hosts decide; see Ballots
	replacing replacing

	// silent is, for each bell of this rank, its value | 1 when a sleep last ended
	// without a ring, or with the one at the end of the call's time.
	silent [Bells]atomic.Uint64
	// long is, for each bell of this rank, how many waits in a row have slept for longer than
	// their Policy yields.
	long [Bells]atomic.Uint32

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	serving sync.WaitGroup // every goroutine of this Host
	abort   sync.Once
}

// Rank and Size are as configured.
func (h *Host) Rank() int { return h.cfg.Rank }
func (h *Host) Size() int { return h.cfg.Size }

// Members are the ranks of this machine, ascending, this one among them. The
// caller does not change them.
func (h *Host) Members() []int { return h.members }

func (h *Host) member(rank int) bool {
	_, ok := slices.BinarySearch(h.members, rank)
	return ok
}

// Cores is how many cores the members may use, all together: each of them may be bound to one.
func (h *Host) Cores() int {
	var pids []int
	for _, rank := range h.members {
		pids = append(pids, int(h.page.pid(rank).Load()))
	}
	return mem.Cores(pids...)
}

// State is nil while rank takes part, rdma.ErrLeft once it has left and a
// *rdma.PeerError once it is dead. After Close it is rdma.ErrClosed.
func (h *Host) State(rank int) error {
	if rank < 0 || rank >= h.cfg.Size {
		return fmt.Errorf("rank %d; expected 0 to %d", rank, h.cfg.Size-1)
	}
	if !h.guard.Enter() {
		return rdma.ErrClosed
	}
	defer h.guard.Exit()
	if h.cfg.Elsewhere != nil && !h.member(rank) {
		return h.elsewhere(rank)
	}
	switch h.page.state(rank).Load() {
	case left:
		return rdma.ErrLeft
	case dead:
		if h.leaveOut(rank); h.undecided(rank) {
			return nil
		}
		return &rdma.PeerError{Rank: rank, Kind: rdma.Ended, Err: fmt.Errorf("its process %d has ended without leaving", h.page.pid(rank).Load())}
	case aborted:
		return h.page.reason(rank).Heard(rank, h.cfg.Rank, h.cfg.Size)
	}
	return nil
}

// Connection is what is known of how rank can be reached; of a member, whether its
// process is stopped.
func (h *Host) Connection(rank int) (c rdma.Connection) {
	if !h.guard.Enter() {
		return c
	}
	defer h.guard.Exit()
	if h.member(rank) {
		c.Stopped = mem.Stopped(int(h.page.pid(rank).Load()))
	}
	return c
}

// Abort makes this rank dead for all others, which get why as their error.
// Only the first call counts; its text is cut at about 1,400 bytes.
func (h *Host) Abort(why *rdma.PeerError) {
	if h.page == nil || !h.guard.Enter() { // nil: nobody has seen us
		return
	}
	defer h.guard.Exit()
	h.abort.Do(func() {
		h.page.setReason(h.cfg.Rank, why)
		h.change(h.cfg.Rank, aborted)
	})
}

// Changes counts what changes in the answers of State, of the members. It is 0 if others
// change as well. Not for after Close.
func (h *Host) Changes() uint64 {
	if h.cfg.Elsewhere != nil {
		return 0
	}
	return h.page.changes().Load()
}

// change moves a rank to a new state and lets everybody know. The caller has
// entered the guard. The change counts again where another rank was first: that one may have
// died, or be stopped, before it has counted.
func (h *Host) change(rank int, state uint64) {
	first := h.page.advance(rank, state)
	h.page.changes().Add(1)
	if first {
		for _, r := range h.members {
			h.ringRank(r)
		}
	}
}

// Map returns n bytes of zeroed memory of this process alone, and Reserve makes
// the pages of a shared mapping present. Both look first whether the memory is
// there, less what other ranks are about to take, and fail with
// rdma.ErrNoMemory otherwise.
func (h *Host) Map(n int) (b []byte, err error) {
	if !h.guard.Enter() {
		return nil, rdma.ErrClosed
	}
	defer h.guard.Exit()
	b, err = h.claims().Map(n)
	return b, memory(err)
}

// Reserve: see Map.
func (h *Host) Reserve(b []byte) error {
	if !h.guard.Enter() {
		return rdma.ErrClosed
	}
	defer h.guard.Exit()
	return memory(h.claims().Reserve(b))
}

func (h *Host) claims() *mem.Claims {
	return &mem.Claims{Mine: h.page.claim(h.cfg.Rank), Others: h.claimed}
}

// claimed is what the other live ranks are about to take.
func (h *Host) claimed() (sum uint64) {
	for _, rank := range h.members {
		if s := h.page.state(rank).Load(); rank != h.cfg.Rank && (s == joining || s == alive) {
			sum += h.page.claim(rank).Load()
		}
	}
	return sum
}

// Close leaves in good order and gives everything back. What was announced can
// no longer be fetched; what others have mapped stays theirs.
func (h *Host) Close() error {
	if h.guard.Enter() {
		h.change(h.cfg.Rank, left)
		h.guard.Exit()
	}
	return h.release()
}

// release gives back everything that the Host holds, also one that is only half
// made.
func (h *Host) release() error {
	first := h.guard.Close(func() { h.ringRank(h.cfg.Rank) })
	if !first {
		return nil
	}
	h.cancel()
	mem.Untrack(h.listenFd)
	err := h.listen.Close()
	if h.deaths != nil {
		h.deaths.event.Set()
	}
	h.serving.Wait()
	h.regions.close()
	if h.pageFile != nil {
		h.pageFile.Close()
	}
	if h.page != nil {
		err = errors.Join(err, mem.Unmap(h.page))
	}
	return err
}
