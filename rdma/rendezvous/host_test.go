package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

var jobs atomic.Int64

// store is a job id that no other test uses.
func store(t *testing.T) string {
	return fmt.Sprintf("local:%x%04x", time.Now().UnixNano(), jobs.Add(1))
}

// within is a context that fails the test rather than hang.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// meet joins n ranks in this process. They are closed when the test ends.
func meet(t *testing.T, n int) []*Host {
	t.Helper()
	return meetAs(t, Config{Size: n, Store: store(t), Token: "secret"})
}

// meetAs joins the members of c, or all ranks.
func meetAs(t *testing.T, c Config) []*Host {
	t.Helper()
	hosts := make([]*Host, len(c.members()))
	var all sync.WaitGroup
	for i, rank := range c.members() {
		c := c
		c.Rank = rank
		all.Go(func() {
			h, err := Join(within(t, fleet.Patience), c)
			if err != nil {
				t.Errorf("rank %d: %v", c.Rank, err)
				return
			}
			hosts[i] = h
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, h := range hosts {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return hosts
}

func TestJoinAndLeave(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			hosts := meet(t, n)
			for _, h := range hosts {
				for rank := range n {
					if err := h.State(rank); err != nil {
						t.Errorf("rank %d sees rank %d: %v", h.Rank(), rank, err)
					}
				}
				if h.View().Generation != 1 || h.Size() != n {
					t.Errorf("generation %d, size %d", h.View().Generation, h.Size())
				}
			}
			hosts[n-1].Close()
			for _, h := range hosts[:n-1] {
				if err := h.State(n - 1); err != rdma.ErrLeft {
					t.Errorf("rank %d sees the one that left: %v", h.Rank(), err)
				}
			}
			if err := hosts[n-1].State(0); err != rdma.ErrClosed {
				t.Errorf("State after Close: %v", err)
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		Config
		want string
	}{
		{Config{Rank: 0, Size: 0, Store: "local:1"}, "size 0"},
		{Config{Rank: 0, Size: MaxSize + 1, Store: "local:1"}, "1 to 4096"},
		{Config{Rank: 2, Size: 2, Store: "local:1"}, "rank 2 of 2: expected 0 to 1"},
		{Config{Rank: -1, Size: 2, Store: "local:1"}, "rank -1"},
		{Config{Rank: 0, Size: 1, Store: ""}, "local:5eed"},
		{Config{Rank: 0, Size: 1, Store: "local:"}, "hexadecimal"},
		{Config{Rank: 0, Size: 1, Store: "local:xyz"}, "hexadecimal"},
		{Config{Rank: 0, Size: 1, Store: "tcp:1"}, "local: and"},
		{Config{Rank: 0, Size: 1, Store: "local:" + strings.Repeat("a", 65)}, "1 to 64"},
		{Config{Rank: 0, Size: 1, Store: "local:1", Token: strings.Repeat("a", 257)}, "the limit is 256"},
		{Config{Rank: 1, Size: 3, Store: "local:1", Members: []int{}}, "members []"},
		{Config{Rank: 1, Size: 3, Store: "local:1", Members: []int{0, 2}}, "with rank 1"},
		{Config{Rank: 1, Size: 3, Store: "local:1", Members: []int{2, 1}}, "ascending"},
		{Config{Rank: 1, Size: 3, Store: "local:1", Members: []int{1, 1}}, "ascending"},
		{Config{Rank: 1, Size: 3, Store: "local:1", Members: []int{1, 3}}, "below 3"},
	} {
		if h, err := Join(context.Background(), c.Config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v; expected %q", c.Config, h, err, c.want)
		}
	}
}

// Of five ranks three are on this machine.
func TestMembers(t *testing.T) {
	members := []int{1, 2, 4}
	away := errors.New("it is on the moon")
	hosts := meetAs(t, Config{Size: 5, Store: store(t), Members: members, Elsewhere: func(rank int) error {
		if rank == 3 {
			return away
		}
		return nil
	}})
	for i, h := range hosts {
		if h.Rank() != members[i] || h.Size() != 5 || !slices.Equal(h.Members(), members) {
			t.Errorf("rank %d of %d, members %v", h.Rank(), h.Size(), h.Members())
		}
		if err := errors.Join(h.State(0), h.State(1), h.State(2), h.State(4)); err != nil {
			t.Error(err)
		}
		if err := h.State(3); err != away {
			t.Errorf("rank %d says of rank 3: %v", h.Rank(), err)
		}
		if a := h.cfg.Absent(); a != nil {
			t.Errorf("rank %d misses %v", h.Rank(), a)
		}
	}
	if _, err := hosts[0].Announce("x", Region{Readers: []int{2, 3}}); err == nil || !strings.Contains(err.Error(), "rank 3 is on another machine") {
		t.Errorf("announced to another machine: %v", err)
	}
	if _, err := hosts[1].Announce("x", Region{"for all", []int{1, 4}, []*mem.File{file(t, 1, 7)}}); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*Host{hosts[0], hosts[2]} {
		if err := h.Fetch(within(t, fleet.Patience), 0, patient, "x", []int{2}, func(int, Region) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	c := hosts[0].cfg
	c.Rank, c.Members = 3, []int{1, 3}
	if _, err := Join(within(t, fleet.Patience), c); err == nil || !strings.Contains(err.Error(), "it sees rank 3 on another machine") {
		t.Errorf("a rank that is no member: %v", err)
	}
	hosts[0].Close() // who keeps the page
	if err := hosts[2].State(1); err != rdma.ErrLeft {
		t.Errorf("rank 4 sees the one that left: %v", err)
	}
}

func TestRankTaken(t *testing.T) {
	h := meet(t, 1)[0]
	took := fleet.Stopwatch()
	_, err := Join(within(t, fleet.Patience), h.cfg)
	if !errors.Is(err, rdma.ErrRankTaken) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", h.page.pid(0).Load())) {
		t.Errorf("second rank 0: %v; expected ErrRankTaken with the process", err)
	}
	if d := took(); d > time.Second {
		t.Errorf("took %v", d)
	}
}

func TestMissingRanksAreNamed(t *testing.T) {
	fleet.Growing(t, func(ctx context.Context) error {
		job := store(t)
		errs := make([]error, 4)
		var all sync.WaitGroup
		for _, rank := range []int{0, 2} {
			all.Go(func() {
				_, err := Join(ctx, Config{Rank: rank, Size: 4, Store: job})
				var peer *rdma.PeerError // where the other gave up first
				late := errors.As(err, &peer) || errors.Is(err, context.DeadlineExceeded)
				if !late || !strings.Contains(err.Error(), "waited for ranks 1, 3 to arrive") {
					errs[rank] = fmt.Errorf("rank %d: %w; expected ranks 1, 3 to be named", rank, err)
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})

	c := Config{Rank: 1, Size: 4, Store: store(t)}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Join(ctx, c); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "ranks 0, 2, 3") {
		t.Errorf("nobody there: %v; expected ranks 0, 2, 3 to be named", err)
	}
}

func TestRefusals(t *testing.T) {
	base := Config{Size: 3, Store: store(t), Token: "right"}
	ctx, cancel := context.WithCancel(context.Background())
	var zero sync.WaitGroup
	zero.Go(func() { Join(ctx, base) })
	defer zero.Wait()
	defer cancel()
	for _, c := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Token = "wrong" }, "the token is wrong\nAll ranks"},
		{func(c *Config) { c.Token = "" }, "the token is wrong\nAll ranks"},
		{func(c *Config) { c.Size = 2 }, "it was started with size 3, not 2\nAll ranks need the same"},
	} {
		other := base
		other.Rank = 1
		c.change(&other)
		if _, err := Join(within(t, fleet.Patience), other); !errors.Is(err, rdma.ErrConfig) || !strings.HasPrefix(err.Error(), "rank 0 refused this one: "+c.want) {
			t.Errorf("%+v: %v; expected a refusal with %q", other, err, c.want)
		}
	}
}

func TestAbortCarriesTheReason(t *testing.T) {
	hosts := meet(t, 3)
	waits := make(chan error)
	for _, h := range hosts[:2] {
		go func() {
			var err error
			werr := h.Wait(context.Background(), 0, Policy{}, func() bool { err = h.State(2); return err != nil })
			waits <- errors.Join(err, werr)
		}()
	}
	hosts[2].Abort(rdma.HasFailed(2, "the loss is not a number"))
	hosts[2].Abort(rdma.HasFailed(2, "only the first counts"))
	for range 2 {
		err := <-waits
		var peer *rdma.PeerError
		if !errors.As(err, &peer) || peer.Rank != 2 || !strings.Contains(err.Error(), "the loss is not a number") {
			t.Errorf("got %v; expected a PeerError of rank 2 with the reason", err)
		}
	}
	hosts[2].Close()
	if err := hosts[0].State(2); err == rdma.ErrLeft {
		t.Error("a rank that had aborted has left in good order")
	}
	hosts[1].Abort(rdma.HasFailed(1, strings.Repeat("x", 1<<20)))
	if err := hosts[0].State(1); err == nil || len(err.Error()) > 2*maxReason {
		t.Error("a long reason was not cut")
	}
}

func TestNoComingBack(t *testing.T) {
	hosts := meet(t, 2)
	hosts[1].Close()
	if _, err := Join(within(t, fleet.Patience), hosts[1].cfg); err == nil || !strings.Contains(err.Error(), "cannot rejoin") {
		t.Errorf("a rank that had left: %v", err)
	}
	if err := hosts[0].State(1); err != rdma.ErrLeft {
		t.Errorf("its state changed to %v", err)
	}
}

// file is n bytes of sealed memory that begin with first.
func file(t *testing.T, n int, first byte) *mem.File {
	t.Helper()
	f, err := mem.NewFile("malt-test", n)
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Map(true)
	if err != nil {
		t.Fatal(err)
	}
	b[0] = first
	if err := errors.Join(mem.Unmap(b), f.Seal()); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFetch(t *testing.T) {
	hosts := meet(t, 3)
	var all sync.WaitGroup
	for _, h := range hosts {
		all.Go(func() {
			me := h.Rank()
			others := []int{(me + 1) % 3, (me + 2) % 3}
			if _, err := h.Announce("box", Region{fmt.Sprint("of ", me), others, []*mem.File{file(t, 100, byte(me)), file(t, 5000, byte(10+me))}}); err != nil {
				t.Error(err)
				return
			}
			seen := map[int]bool{}
			err := h.Fetch(within(t, fleet.Patience), 0, patient, "box", others, func(i int, r Region) error {
				from := others[i]
				seen[from] = true
				if r.Text != fmt.Sprint("of ", from) || len(r.Readers) != 2 || r.Readers[0] != (from+1)%3 || len(r.Files) != 2 || r.Files[1].Size() != 5000 {
					return fmt.Errorf("rank %d got %+v from %d", me, r, from)
				}
				b, err := r.Files[1].Map(false)
				if err != nil {
					return err
				}
				defer mem.Unmap(b)
				if b[0] != byte(10+from) {
					return fmt.Errorf("rank %d got %d from %d", me, b[0], from)
				}
				return nil
			})
			if err != nil || len(seen) != 2 {
				t.Errorf("rank %d: %v, %v", me, seen, err)
			}
		})
	}
	all.Wait()
}

func TestFetchAgainAfterItsContextEnded(t *testing.T) {
	hosts := meet(t, 3)
	if _, err := hosts[1].Announce("x", Region{"", []int{0}, []*mem.File{file(t, 1, 1)}}); err != nil {
		t.Fatal(err)
	}
	use := func(i int, r Region) error { return nil }
	fleet.Growing(t, func(ctx context.Context) error {
		err := hosts[0].Fetch(ctx, 0, patient, "x", []int{1, 2}, use)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "waited for rank 2 to announce x") {
			return fmt.Errorf("half announced: %w", err)
		}
		return nil
	})
	if _, err := hosts[2].Announce("x", Region{"", []int{0, 1}, []*mem.File{file(t, 1, 1)}}); err != nil {
		t.Fatal(err)
	}
	if err := hosts[0].Fetch(within(t, fleet.Patience), 0, patient, "x", []int{1, 2}, use); err != nil {
		t.Errorf("second attempt: %v", err)
	}
	// Rank 1 has been fetched by all its readers, rank 2 has not.
	deadline := within(t, fleet.Patience)
	for len(hosts[1].announcements()) != 0 && deadline.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if a := hosts[1].announcements(); len(a) != 0 {
		t.Errorf("rank 1 still holds %v", a)
	}
	if a := hosts[2].announcements(); len(a) != 1 {
		t.Errorf("rank 2 holds %v, expected what rank 1 has not fetched", a)
	}
	hosts[1].Close() // will never fetch it
	for len(hosts[2].announcements()) != 0 && deadline.Err() == nil {
		time.Sleep(time.Millisecond) // until it knows, too, that rank 0 has fetched it
		hosts[2].sweep()
	}
	if a := hosts[2].announcements(); len(a) != 0 {
		t.Errorf("rank 2 still holds %v for a rank that has left", a)
	}
}

// announcements lists what is held for others.
func (h *Host) announcements() (names []string) {
	h.regions.mu.Lock()
	defer h.regions.mu.Unlock()
	for name := range h.regions.byName {
		names = append(names, name)
	}
	return names
}

func TestFetchFromThoseWhoAreGone(t *testing.T) {
	hosts := meet(t, 4)
	fetch := func(from int) error {
		return hosts[0].Fetch(within(t, fleet.Patience), 0, Policy{}, "never", []int{1, from}, func(int, Region) error { return nil })
	}
	got := make(chan error)
	go func() { got <- fetch(2) }()
	go func() { got <- fetch(3) }()
	hosts[2].Close()
	hosts[3].Abort(rdma.HasFailed(3, "enough"))
	for range 2 {
		err := <-got
		var peer *rdma.PeerError
		switch {
		case errors.As(err, &peer):
			if peer.Rank != 3 || peer.Op != "waiting for never" {
				t.Errorf("got %+v", peer)
			}
		case !errors.Is(err, rdma.ErrLeft) || !strings.Contains(err.Error(), "rank 2"):
			t.Errorf("got %v", err)
		}
	}
	mismatch := errors.New("not what I expected")
	if _, err := hosts[1].Announce("odd", Region{Readers: []int{0}}); err != nil {
		t.Fatal(err)
	}
	if err := hosts[0].Fetch(context.Background(), 0, Policy{}, "odd", []int{1}, func(int, Region) error { return mismatch }); err != mismatch {
		t.Errorf("use failed, Fetch gave %v", err)
	}
}

func TestBadAnnouncementsAndFetches(t *testing.T) {
	h := meet(t, 2)[0]
	for _, readers := range [][]int{{2}, {-1}, {1, 1}} {
		if _, err := h.Announce("x", Region{Readers: readers}); err == nil {
			t.Errorf("readers %v were accepted", readers)
		}
		if err := h.Fetch(context.Background(), 0, patient, "x", readers, nil); err == nil {
			t.Errorf("senders %v were accepted", readers)
		}
	}
	if _, err := h.Announce(strings.Repeat("x", maxString+1), Region{}); err == nil {
		t.Error("a long name was accepted")
	}
	h.Close()
	if _, err := h.Announce("y", Region{Readers: []int{1}}); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("Announce after Close: %v", err)
	}
	if err := h.Fetch(context.Background(), 0, patient, "y", []int{1}, nil); err != rdma.ErrClosed {
		t.Errorf("Fetch after Close: %v", err)
	}
}

func TestWaitEnds(t *testing.T) {
	hosts := meet(t, 2)
	h := hosts[0]
	never := func() bool { return false }
	for _, p := range []Policy{{}, {Spin: 100}, {Yield: time.Microsecond}, {Yield: math.MaxInt64}, {Sleep: time.Millisecond}, {Spin: 1, Yield: 1, Sleep: time.Millisecond}} {
		ctx, cancel := context.WithCancel(context.Background())
		waiting := func(done *atomic.Bool) (got chan error) {
			got = make(chan error)
			looked := make(chan struct{})
			once := sync.OnceFunc(func() { close(looked) })
			go func() { got <- h.Wait(ctx, 1, p, func() bool { once(); return done.Load() }) }()
			<-looked
			return got
		}
		var done, undone atomic.Bool
		got := waiting(&done)
		done.Store(true)
		hosts[1].Ring(h.BellID(1))
		if err := <-got; err != nil {
			t.Errorf("%+v: %v, after a ring", p, err)
		}
		got = waiting(&undone)
		cancel()
		if err := <-got; err != context.Canceled {
			t.Errorf("%+v: %v, expected Canceled", p, err)
		}
	}
	if err := h.Wait(context.Background(), 0, Policy{}, func() bool { return true }); err != nil {
		t.Error(err)
	}
	got := make(chan error)
	in := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(in) })
		got <- h.Wait(context.Background(), 0, Policy{}, func() bool { once(); return false })
	}()
	<-in
	h.Close()
	if err := <-got; err != rdma.ErrClosed {
		t.Errorf("closed while waiting: %v", err)
	}
	if err := h.Wait(context.Background(), 0, Policy{}, never); err != rdma.ErrClosed {
		t.Errorf("Wait after Close: %v", err)
	}
	hosts[1].Ring(0) // no bell's number
	hosts[1].Ring(1 << 60)
	hosts[1].RingAll()
	h.Ring(1)
	h.RingAll()
	h.Abort(rdma.HasFailed(h.Rank(), "too late"))
	if _, err := h.Map(1); err != rdma.ErrClosed {
		t.Errorf("Map after Close: %v", err)
	}
}

// A wait in short calls sleeps all the time, though its policy is to look first.
func TestSilentBellIsNotLookedAt(t *testing.T) {
	h := meet(t, 2)[0]
	never := func() bool { return false }
	for _, p := range []Policy{{}, {Spin: math.MaxInt}, {Spin: math.MaxInt}} {
		got := make(chan error, 1)
		go func() { got <- h.Wait(within(t, 10*time.Millisecond), 1, p, never) }()
		select {
		case err := <-got:
			if err != context.DeadlineExceeded {
				t.Errorf("%+v: %v", p, err)
			}
		case <-time.After(fleet.Patience):
			t.Fatalf("%+v: looks at a bell that nobody has rung since the sleep before", p)
		}
	}
}

// ringing is a context that is rung in each sleep.
type ringing struct {
	context.Context
	ring   func()
	sleeps int
}

func (r *ringing) Sleep(*uint32, uint32) {
	r.sleeps++
	r.ring()
}

// A wait after some that have slept for longer than they yield does not yield, and the one
// after it does.
func TestLongWaitsDoNotYield(t *testing.T) {
	h := meet(t, 2)[0]
	ctx := &ringing{Context: within(t, fleet.Patience), ring: func() { h.Ring(h.BellID(1)) }}
	wait := func(yield time.Duration) (looks int) { // before the first sleep
		before := ctx.sleeps
		err := h.Wait(ctx, 1, Policy{Yield: yield}, func() bool {
			if ctx.sleeps == before {
				looks++
			}
			return ctx.sleeps > before
		})
		if err != nil {
			t.Fatal(err)
		}
		return looks
	}
	for range mostLong {
		wait(1)
	}
	const least = 2 // at once, and behind the bit
	if n := wait(time.Minute); n != least {
		t.Errorf("looked %d times after %d long waits, not %d", n, mostLong, least)
	}
	if n := h.long[1].Load(); n != 0 {
		t.Errorf("%d long waits count after one of less than a minute", n)
	}
	wait(1)
	if err := h.Wait(ctx, 1, Policy{}, func() bool { return true }); err != nil || h.long[1].Load() != 0 {
		t.Errorf("%v; %d long waits count after one that did not sleep", err, h.long[1].Load())
	}
}

// While others have the core a wait does not use up its time to yield.
func TestYieldsToOthersAreBrief(t *testing.T) {
	h := meet(t, 1)[0]
	const yields, others = 10, 20 * brief // how long others have the core each time
	for end := time.Now().Add(fleet.Patience); ; {
		looks := -1        // the first comes before any yield
		h.long[0].Store(0) // no long wait before
		ctx := &ringing{Context: within(t, fleet.Patience), ring: func() { h.Ring(h.BellID(0)) }}
		err := h.Wait(ctx, 0, Policy{Yield: yields * brief}, func() bool {
			if ctx.sleeps > 0 {
				return true
			}
			looks++
			for now := time.Now(); time.Since(now) < others; {
			}
			return false
		})
		if err != nil {
			t.Fatal(err)
		}
		if looks > yields { // less if this process lost its core for longer: then it sleeps at once
			return
		}
		if time.Now().After(end) {
			t.Fatalf("looked %d times, expected more than %d", looks, yields)
		}
	}
}

// Who is rung again and again for nothing looks a few times in all, not each time.
func TestRingsForNothing(t *testing.T) {
	h := meet(t, 1)[0]
	const rings, spin = 50, 1000
	bell := h.page.bell(0, 0)
	steps, rung := 0, 0
	err := h.Wait(within(t, fleet.Patience), 0, Policy{Spin: spin}, func() bool {
		steps++
		if bell.Load()&1 != 0 { // it is about to sleep
			rung++
			h.Ring(h.BellID(0))
		}
		return rung > rings
	})
	if err != nil {
		t.Fatal(err)
	}
	if steps > rings*spin/5 {
		t.Errorf("looked %d times, rung %d times", steps, rings)
	}
}

func TestMemoryErrors(t *testing.T) {
	h := meet(t, 1)[0]
	if _, err := h.Map(1 << 46); !errors.Is(err, rdma.ErrNoMemory) {
		t.Errorf("64 TiB: %v", err)
	}
	b, err := h.Map(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Reserve(b); err != nil {
		t.Error(err)
	}
	if err := mem.Unmap(b); err != nil {
		t.Error(err)
	}
}
