package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// patient is how this package waits: for others to start, which takes long.
var patient = Policy{Sleep: 50 * time.Millisecond}

// Join makes this process a rank and returns when all ranks have arrived. It
// fails with rdma.ErrRankTaken where another live process already is this rank,
// with a *rdma.PeerError where a rank dies meanwhile, and when ctx ends with an
// error that names the ranks that have not arrived. A rank whose Join failed is
// dead to the others.
func Join(ctx context.Context, c Config) (*Host, error) {
	job, err := c.job()
	if err != nil {
		return nil, err
	}
	h := &Host{cfg: c, job: job, members: c.members()}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if err := h.bind(); err != nil {
		h.cancel()
		return nil, advice(err)
	}
	if err := h.join(ctx); err != nil {
		err = advice(err)
		h.Abort(rdma.HasFailed(c.Rank, fmt.Sprintf("it could not join: %v", err)))
		return nil, errors.Join(err, h.release())
	}
	return h, nil
}

// bind takes the rank's socket. The kernel lets one process only have it.
func (h *Host) bind() error {
	l, err := net.ListenUnix("unix", address(h.job, h.cfg.Rank))
	if errors.Is(err, syscall.EADDRINUSE) {
		return h.taken()
	}
	if err != nil {
		return fmt.Errorf("rank %d: listening: %w", h.cfg.Rank, err)
	}
	h.listen = l
	raw, err := l.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { h.listenFd = int(fd) })
	}
	if err != nil {
		l.Close()
		return fmt.Errorf("rank %d: listening: %w", h.cfg.Rank, err)
	}
	mem.Track(h.listenFd)
	return nil
}

// taken says who has the rank's socket.
func (h *Host) taken() error {
	by := func(who any) error {
		return say.Errorf(rdma.ErrRankTaken, "rank %d is taken, by %v", h.cfg.Rank, who).At("in job %s", h.job).
			Try("Give every rank its own number, and every job its own id.")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	c, err := dial(ctx, h.job, h.cfg.Rank)
	if err != nil {
		return by(err)
	}
	defer c.Close()
	who := fmt.Sprintf("process %d", c.pid)
	if _, err := mem.StartTime(c.pid); errors.Is(err, mem.ErrNoProcess) {
		who += ", which has ended but has a forked child that still holds its socket"
	}
	return by(who)
}

// join gets the page, enters this rank in it, and waits for the others.
func (h *Host) join(ctx context.Context) error {
	started, err := mem.StartTime(os.Getpid())
	if err != nil {
		return err
	}
	if h.cfg.Rank == h.members[0] {
		err = h.makePage()
	} else {
		err = h.fetchPage(ctx)
	}
	if err != nil {
		return err
	}
	if err := h.watchDeaths(); err != nil {
		return err
	}
	rank := h.cfg.Rank
	if s := h.page.state(rank).Load(); s != absent {
		h.abort.Do(func() {}) // the record is another's: leave it as it is
		return say.Errorf(rdma.ErrConfig, "rank %d was in this job before, as process %d, and cannot rejoin",
			rank, h.page.pid(rank).Load()).Try("Start the whole job again.")
	}
	h.page.pid(rank).Store(uint64(os.Getpid()))
	h.page.start(rank).Store(started)
	h.serving.Go(h.serve)
	h.change(rank, joining)
	if err := h.awaitAll(ctx); err != nil {
		return err
	}
	h.change(rank, alive)
	return nil
}

// makePage is the first member's way to the page.
func (h *Host) makePage() error {
	f, err := mem.NewFile("malt-control", pageBytes(h.cfg.Size))
	if err != nil {
		return err
	}
	h.pageFile = f
	b, err := f.Map(true)
	if err != nil {
		return memory(err)
	}
	h.page = b
	if err := mem.Reserve(b); err != nil {
		return memory(err)
	}
	h.page.format(h.cfg.Size, h.cfg.Try)
	return nil
}

// fetchPage is everybody else's: it asks the first member until that has arrived.
func (h *Host) fetchPage(ctx context.Context) error {
	for wait := backoff(0); ; wait = wait.next() {
		err := h.fetchPageOnce(ctx)
		if err == nil || errors.As(err, new(*refusedError)) || errors.Is(err, errFull) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
			return err
		}
		if wait.sleep(ctx) != nil {
			return h.alone(h.unreachable(), ctx.Err())
		}
	}
}

func (h *Host) fetchPageOnce(ctx context.Context) error {
	keeper := h.members[0]
	c, err := dial(ctx, h.job, keeper)
	if errors.Is(err, errStranger) {
		return refused(keeper, say.Of(err))
	}
	if err != nil {
		return err
	}
	defer c.Close()
	defer c.interruptible(ctx)()
	m, fds, err := h.cfg.ask(c, wantPage, "", keeper)
	if err != nil {
		return err
	}
	if len(fds) != 1 || len(m.Sizes) != 1 {
		closeAll(fds)
		return refused(keeper, *say.Errorf(nil, "it sent %d descriptors, expected 1", len(fds)))
	}
	f, err := mem.OpenFile(fds[0], pageBytes(h.cfg.Size))
	if err != nil {
		return refused(keeper, say.Of(err))
	}
	defer f.Close()
	b, err := f.Map(true)
	if err != nil {
		return err
	}
	p := page(b)
	err = p.check(h.cfg.Size)
	if pid := p.pid(keeper).Load(); err == nil && pid != uint64(c.pid) {
		err = say.Errorf(nil, "its process has id %d for itself and %d for this one", pid, c.pid).Try(namespaces)
	}
	if err != nil {
		_ = mem.Unmap(b)
		return refused(keeper, say.Of(err))
	}
	h.page = p
	return nil
}

const namespaces = "All ranks of a machine must run in the same process namespace (container)."

// unreachable lists the ranks that a Join is waiting for.
func (h *Host) unreachable() []int {
	ranks := h.cfg.Absent()
	if ranks == nil {
		ranks = h.members[:1] // it listens but does not answer
	}
	return ranks
}

// Absent lists the other ranks of the job that nobody is: no process listens for
// them. It is for messages; a rank may come the moment after.
func (c *Config) Absent() (ranks []int) {
	job, err := c.job()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	for _, rank := range c.members() {
		if rank == c.Rank {
			continue
		}
		if c, err := dial(ctx, job, rank); err == nil {
			c.Close()
		} else {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// awaitAll waits until every member is at least joining, and watches each from
// then on.
func (h *Host) awaitAll(ctx context.Context) error {
	var missing []int
	var failed error
	arrived := make([]bool, h.cfg.Size)
	err := h.Wait(ctx, 0, patient, func() bool {
		missing = missing[:0]
		for _, rank := range h.members {
			s := h.page.state(rank).Load()
			if s == absent {
				missing = append(missing, rank)
				continue
			}
			if !arrived[rank] {
				arrived[rank] = true
				if failed = h.deaths.watch(rank); failed != nil {
					return true
				}
			}
			if err := h.State(rank); err != nil && err != rdma.ErrLeft {
				failed = peerError(err, "joining")
				return true
			}
		}
		return len(missing) == 0
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return h.alone(missing, err)
	}
	return nil
}

// alone is the error of a rank that missing ranks have not come to.
func (h *Host) alone(missing []int, cause error) error {
	return say.Errorf(cause, "the job did not start in time").At("rank %d waited for %s to arrive", h.cfg.Rank, say.Ranks(missing)).
		Try("Start every rank, with the same MALT_STORE, as malt run does.")
}

// peerError adds what was being done to a *rdma.PeerError.
func peerError(err error, op string) error {
	var peer *rdma.PeerError
	if errors.As(err, &peer) {
		return peer.During(op)
	}
	return err
}

// memory turns a lack of memory into rdma's error.
func memory(err error) error {
	var short *mem.ShortError
	if errors.As(err, &short) {
		return rdma.NoMemory(short)
	}
	return err
}

// backoff is how long to wait before asking again: from a millisecond to fifty.
type backoff time.Duration

func (b backoff) next() backoff {
	return max(min(2*b, backoff(50*time.Millisecond)), backoff(time.Millisecond))
}

func (b backoff) sleep(ctx context.Context) error {
	t := time.NewTimer(time.Duration(b))
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
