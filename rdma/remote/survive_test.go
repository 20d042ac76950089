package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/internal/handshake"
	"malt/rdma/tcp"
	"malt/rdma/vote"
	"malt/rdma/wire"
)

// testDoubt is Config.doubt by default.
const testDoubt = WhereSurvived * 4 / 5

// members keeps what it is told.
type members struct {
	job      *vote.Job // refuses votes that cannot be in it; nil: none
	farewell uint64

	mu       sync.Mutex
	landed   []landed
	out      []int // are not in the view
	expelled []int // who has refused this rank
}

// landed is a frame that was posted.
type landed struct {
	from int
	kind vote.Kind
	arg  uint32
	body string
}

func (m *members) Land(peer int, k vote.Kind, arg uint32, body []byte) error {
	if m.job != nil {
		if _, err := m.job.Decode(k, arg, body, peer, 1-peer); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.landed = append(m.landed, landed{peer, k, arg, string(body)})
	return nil
}

func (m *members) Has(rank int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !slices.Contains(m.out, rank)
}

func (m *members) Expelled(peer int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expelled = append(m.expelled, peer)
}

func (m *members) Farewell() uint64 { return m.farewell }

func (m *members) refused() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.expelled)
}

// leaveOut is that a view without rank has been decided.
func (m *members) leaveOut(rank int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out = append(m.out, rank)
}

func (m *members) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.landed)
}

func (m *members) has(l landed) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.landed, l)
}

// surviving are n ranks of a job that goes on when one of them dies.
func surviving(t *testing.T, n int, change func(*config)) ([]*Transport, []*members) {
	t.Helper()
	all := openRanks(t, n, func(c *config) {
		c.Survives = true
		if change != nil {
			change(c)
		}
	})
	them := make([]*members, n)
	for rank, r := range all {
		them[rank] = &members{}
		r.Survive(them[rank])
	}
	until(t, "all look after doubts", func() bool {
		return !slices.ContainsFunc(all, func(r *Transport) bool { return !r.doubting.Load() })
	})
	return all, them
}

// until waits for what only a defect prevents.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(fleet.Patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", fleet.Patience, what)
		}
	}
}

// keptWaiting is of a loop that looks every millisecond: how long, in all, others had its core. Silence of a peer goes on
// meanwhile, since nobody here asks it.
type keptWaiting struct {
	at   time.Time
	late time.Duration
}

func (k *keptWaiting) look() (late time.Duration) {
	if passed := time.Since(k.at); !k.at.IsZero() && passed > 3*time.Millisecond {
		k.late += passed
	}
	k.at = time.Now()
	return k.late
}

// Votes arrive both ways as they were posted, in order; also while a large update is under
// way, which it overtakes.
func TestVotesArrive(t *testing.T) {
	const large, rounds, kinds = 64 << 20, 10, int(vote.Last - vote.First + 1)
	all, them := surviving(t, 2, nil)
	out, in := pair(t, all, rdma.Spec{Bytes: large, Mode: rdma.Queue(1)})
	overtaken := 0
	for round := range rounds {
		b, err := out.Begin()
		if err != nil || b == nil {
			t.Fatal(err)
		}
		if err := out.Commit(len(b), rdma.Stamp{Clock: uint64(round + 1)}, nil); err != nil {
			t.Fatal(err)
		}
		until(t, "the update is under way", func() bool {
			_, received := all[1].links[0].wireBytes()
			return received > uint64(large*round)+large/16
		})
		body := func(k vote.Kind) string {
			least, _ := vote.Limits(k)
			return strings.Repeat(string(rune('a'+round)), int(least))
		}
		for rank, r := range all {
			for k := vote.First; k <= vote.Last; k++ {
				r.Post(1-rank, k, uint32(round), []byte(body(k)))
			}
		}
		for rank, m := range them {
			until(t, "the votes land", func() bool { return m.count() == (round+1)*kinds })
			if c, _ := in.Clock(); rank == 1 && c == uint64(round) {
				overtaken++
			}
			for i, got := range m.landed[round*kinds:] {
				k := vote.First + vote.Kind(i)
				if want := (landed{1 - rank, k, uint32(round), body(k)}); got != want {
					t.Errorf("rank %d: %v; expected %v", rank, got, want)
				}
			}
		}
		until(t, "the update lands", func() bool {
			u, ok, err := in.Next()
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				in.Release(u.Seq)
			}
			return ok
		})
		until(t, "it is released", func() bool { b, _ := out.Begin(); return b != nil })
	}
	if t.Logf("votes have overtaken %d of %d updates", overtaken, rounds); overtaken == 0 {
		t.Error("votes wait for the update that is under way")
	}
	closeAll(t, all)
}

// A peer is told with what a rank has left, and nothing of one that has not, or has died.
func TestFarewell(t *testing.T) {
	all, them := surviving(t, 3, nil)
	them[0].farewell = 7
	if n, left := all[1].Left(0); left {
		t.Errorf("rank 0 has left, with %d, before it has", n)
	}
	if err := all[0].Close(); err != nil {
		t.Fatal(err)
	}
	all[2].Abort(rdma.HasFailed(2, "it has to"))
	until(t, "rank 1 knows both ends", func() bool { return all[1].State(0) != nil && all[1].State(2) != nil })
	if n, left := all[1].Left(0); n != 7 || !left {
		t.Errorf("rank 0 has left: %v, with %d", left, n)
	}
	if n, left := all[1].Left(2); left {
		t.Errorf("rank 2 has left, with %d", n)
	}
	closeAll(t, all[1:])
}

// Witnesses have connections, for votes alone: the ranks make words without them.
func TestWitnesses(t *testing.T) {
	all, them := surviving(t, 3, func(c *config) { c.Size, c.Witnesses = 2, 1 })
	if all[0].Size() != 2 || all[2].Size() != 2 {
		t.Fatalf("sizes %d and %d", all[0].Size(), all[2].Size())
	}
	made := make(chan error)
	for rank := range 2 {
		go func() {
			w, err := all[rank].Words(t.Context(), "w", 1)
			if err == nil {
				w.Set(0, uint64(1+rank))
				err = all[rank].Wait(t.Context(), func() bool { v, _ := w.Get(1-rank, 0); return v == uint64(2-rank) })
			}
			made <- err
		}()
	}
	for range 2 {
		if err := <-made; err != nil {
			t.Error(err)
		}
	}
	all[2].Post(1, vote.Ask, 0, make([]byte, 16))
	all[0].Post(2, vote.Ask, 0, make([]byte, 16))
	until(t, "the votes land", func() bool { return them[1].count() == 1 && them[2].count() == 1 })
	closeAll(t, all)
}

// Votes for a connection that takes none do not pile up.
func TestVotesAreDropped(t *testing.T) {
	_, l, _, ends := alone(t)
	defer ends()
	tr := newTransport(l.rank, l.rank.bells, nil)
	tr.Post(1, vote.Ask, 0, make([]byte, 16)) // without a connection
	s := &session{link: l}
	l.session.Store(s)
	for range mostVotes {
		tr.Post(1, vote.Ask, 0, make([]byte, 16))
	}
	tr.Post(0, vote.Ask, 0, nil) // to itself
	if n := len(s.votes.frames); n == 0 || n > mostVotes {
		t.Errorf("%d bytes wait, expected up to %d", n, mostVotes)
	}
	n := s.votes.n
	if s.sendVotes(); len(s.out) != int(n)*(frameBytes+16) || s.posted.Load() != n || len(s.votes.frames) != 0 {
		t.Errorf("%d bytes are sent, as %d frames; expected %d frames", len(s.out), s.posted.Load(), n)
	}
	l.session.Store(nil)
}

// Frames of jobs that go on do no harm in one that stops, or that has yet to go on. Those
// that cannot be are refused there too.
func TestVotesBeforeSurvive(t *testing.T) {
	r, l, _, ends := alone(t)
	defer ends()
	var all []byte
	for k := kind(vote.First); k <= beat; k++ {
		least := limitOf(k).least
		h := header{kind: k, length: least}
		all = append(h.append(all), make([]byte, least)...)
	}
	if err := l.feed(all); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	m := &members{}
	newTransport(r, r.bells, nil).Survive(m)
	if err := l.feed(all); !errors.Is(err, io.EOF) || len(m.landed) != int(vote.Last-vote.First+1) {
		t.Errorf("%v, with %d votes", err, len(m.landed))
	}
	for what, h := range map[string]header{
		"too short":       {kind: kind(vote.Decided), length: 9},
		"too long":        {kind: kind(vote.Ask), length: 17},
		"of a box":        {kind: kind(vote.Ask), length: 16, id: 1},
		"with flags":      {kind: kind(vote.Ask), length: 16, flags: flagLast},
		"beat and more":   {kind: beat, length: 1},
		"after the beat":  {kind: beat + 1},
		"a beat of flags": {kind: beat, flags: flagQuiet},
	} {
		if err := l.feed(append(h.append(nil), make([]byte, h.length)...)); !errors.Is(err, rdma.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(m.landed) != int(vote.Last-vote.First+1) {
		t.Errorf("%d votes have landed", len(m.landed))
	}
	m.job = &vote.Job{Hosts: 2, Of: []int{0, 1}}
	h := header{kind: kind(vote.Ask), length: 16} // of generation 0
	if err := l.feed(append(h.append(nil), make([]byte, 16)...)); !errors.Is(err, rdma.ErrCorrupt) {
		t.Errorf("a vote that members refuse: %v", err)
	}
}

// News of deaths from others are neither passed on nor believed once the job goes on.
func TestNoNewsOfDeaths(t *testing.T) {
	r, l, _, ends := alone(t)
	defer ends()
	r.cfg.Size = 3
	r.links, r.ends = append(r.links, nil), append(r.ends, end{})
	r.addLink(2)
	gone := &rdma.PeerError{Rank: 2, Kind: rdma.Ended, Err: &goneError{}}
	r.spread(2, gone)
	newTransport(r, r.bells, nil).Survive(&members{})
	r.spread(2, gone)
	if n := len(r.known()); n != 1 {
		t.Errorf("%d deaths are to be told, expected that from before", n)
	}
	s := &session{link: l}
	if s.obituaries(); len(s.out) > 0 {
		t.Errorf("it says % x", s.out)
	}
	before := runtime.NumGoroutine()
	h := header{kind: dead, id: 2, arg: uint32(rdma.Ended)}
	if err := l.feed(h.append(nil)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	r.watching.Wait()
	if r.links[2].condemned.Load() != nil || runtime.NumGoroutine() > before+1 {
		t.Error("it looks into what a peer says")
	}
}

// Something is always under way over a connection, so an idle one is known to be good
// without anybody who dials.
func TestIdleIsNotDoubted(t *testing.T) {
	ways := make([]detour, 2)
	began := time.Now()
	all, _ := surviving(t, 2, func(c *config) {
		c.Unreachable = leastWhereSurvived
		ways[c.Rank].Wire = tcp.New(c.TCP)
		c.wire = &ways[c.Rank]
	})
	sessions := [2]*session{all[0].links[1].session.Load(), all[1].links[0].session.Load()}
	before := [2]int64{ways[0].dials.Load(), ways[1].dials.Load()}
	var kept keptWaiting
	until(t, "all have sent 30 frames", func() bool {
		late := kept.look()
		for rank, r := range all {
			if silence := r.links[1-rank].silent(); r.state(1-rank) != nil || r.Doubted(1-rank) && silence >= r.cfg.doubt+late {
				t.Fatalf("rank %d doubts the other after a silence of %v", rank, silence)
			}
		}
		return sessions[0].posted.Load() >= 30 && sessions[1].posted.Load() >= 30
	})
	for rank, r := range all {
		s := r.links[1-rank].session.Load()
		if s != sessions[rank] {
			t.Errorf("rank %d has another connection", rank)
		}
		if n := sessions[rank].posted.Load(); n > 60 && time.Duration(n) > 2*time.Since(began)/beatEvery {
			t.Errorf("rank %d has sent %d frames in %v", rank, n, time.Since(began))
		}
		if n := ways[rank].dials.Load() - before[rank]; n > 2+int64(kept.late/(beatEvery/2)) {
			t.Errorf("rank %d has dialled %d times, though this process was kept waiting for only %v", rank, n, kept.late)
		}
	}
	closeAll(t, all)
}

// Of the time in which nobody looked, as when this process was stopped, little counts.
func TestStopIsNoDoubt(t *testing.T) {
	l := lost(t, 1, "")
	l.rank.cfg.doubt = testDoubt
	for range 3 {
		l.count(nil, time.Hour)
	}
	if s := l.silent(); s != 3*testDoubt/4 {
		t.Errorf("after three looks that were hours apart a silence of %v counts, expected %v", s, 3*testDoubt/4)
	}
	newTransport(l.rank, l.rank.bells, nil).Survive(&members{})
	l.silence += time.Hour
	if p := l.patience(); p < 300*time.Millisecond {
		t.Errorf("after a long silence an attempt has %v", p)
	}
	l.silence -= time.Hour
	l.count(newConn(piped{}), time.Hour)
	if s := l.silent(); s != 3*testDoubt/4 {
		t.Errorf("a connection that is not the link's counts, %v", s)
	}
}

// A peer whose process is stopped is not doubted either while there is no connection, however
// long it was away before: its kernel lets this rank in.
func TestStoppedIsHeardAgain(t *testing.T) {
	for own := range 2 {
		t.Run(fmt.Sprint(own), func(t *testing.T) {
			t.Parallel()
			l := lost(t, own, stopped(t))
			r := l.rank
			r.cfg.Survives, r.cfg.doubt = true, testDoubt
			newTransport(r, r.bells, nil).Survive(&members{})
			r.watching.Go(r.watch)
			until(t, "it looks after doubts", r.doubting.Load)
			l.note(nil, time.Hour)
			ended := make(chan error, 1)
			go func() {
				_, err := l.connect()
				ended <- err
			}()
			until(t, "it is heard", func() bool { return l.silent() < testDoubt })
			var kept keptWaiting
			for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if l.silent() >= testDoubt+kept.look() {
					t.Fatalf("it is doubted, after a silence of %v", l.silent())
				}
			}
			l.quit()
			if err := <-ended; !errors.Is(err, errClosing) {
				t.Error(err)
			}
			close(r.unwatch)
			r.watching.Wait()
		})
	}
}

// recording is a Wire that keeps the connections that were dialled.
type recording struct {
	detour
	mu    sync.Mutex
	conns []*conn
}

func (r *recording) Dial(ctx context.Context, peer int, given, apart time.Duration) (wire.Conn, error) {
	c, err := r.detour.Dial(ctx, peer, given, apart)
	if err == nil {
		r.mu.Lock()
		r.conns = append(r.conns, newConn(c))
		r.mu.Unlock()
	}
	return c, err
}

// A process that is stopped has no room for what is sent to it, and its kernel is asked about
// that more and more seldom. Over one more connection it is asked as often as otherwise, and
// so is known to be there, and soon to be away.
func TestFullIsNotDoubted(t *testing.T) {
	l := lost(t, 1, stopped(t))
	r := l.rank
	r.cfg.Survives, r.cfg.doubt = true, testDoubt
	ways := &recording{detour: detour{Wire: r.wire}}
	r.wire = ways
	c, err := l.open(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	if err := c.Write(make([]byte, 64<<20), nil); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection takes everything: %v", err)
	}
	l.session.Store(&session{conn: c})
	newTransport(r, r.bells, nil).Survive(&members{})
	r.watching.Go(r.watch)
	defer func() { l.quit(); close(r.unwatch); r.watching.Wait() }()
	began, kept := time.Now(), keptWaiting{}
	until(t, "its kernel has been asked for a while", func() bool {
		if l.silent() >= testDoubt+kept.look() {
			t.Fatalf("it is doubted, after a silence of %v", l.silent())
		}
		return time.Since(began) > 1500*time.Millisecond && ways.dials.Load() > 1
	})
	if n := ways.dials.Load(); n > 6 && time.Duration(n) > time.Since(began)/(250*time.Millisecond) {
		t.Errorf("%d connections were made in %v to ask its kernel", n-1, time.Since(began))
	}
	at := newDeaf(t).Addr().String()
	ways.to.Store(&TCP{Peers: [][]string{{at}, {at}}})
	t.Logf("%d connections were made to ask its kernel", ways.dials.Load()-1)
	cut := time.Now()
	ways.mu.Lock()
	for _, c := range ways.conns {
		if _, open := c.State(); open {
			mute(t, c)
		}
	}
	ways.mu.Unlock()
	until(t, "its host is away", func() bool { return l.silent() >= testDoubt })
	t.Logf("doubted %v after the cut", time.Since(cut))
}

// A cut makes both doubt, whichever directions it has, and neither is dead for it. When it
// is healed they go on, and nothing is lost or comes twice.
func TestDoubtWhileCut(t *testing.T) {
	for _, how := range []struct {
		mode    string
		encrypt bool
		broken  bool  // the connection, in the cut
		deaf    []int // at whom nothing arrives
	}{
		{"newest", false, false, []int{0}}, {"idle", false, true, []int{0}}, {"queue", true, false, []int{0}},
		{"queue", false, false, []int{1}}, {"idle", false, false, []int{1}},
		{"lock-step", false, false, []int{0, 1}}, {"queue", true, true, []int{0, 1}}, {"idle", false, false, []int{0, 1}},
	} {
		t.Run(fmt.Sprintf("%+v", how), func(t *testing.T) {
			t.Parallel()
			ways := make([]detour, 2)
			all, _ := surviving(t, 2, func(c *config) {
				if how.encrypt {
					c.Encrypt = handshake.Always
				}
				ways[c.Rank].Wire = tcp.New(c.TCP)
				c.wire = &ways[c.Rank]
			})
			nowhere := newDeaf(t).Addr().String()
			both := func(is func(r *Transport, peer int) bool) func() bool {
				return func() bool { return is(all[0], 1) && is(all[1], 0) }
			}
			doubted := func(r *Transport, peer int) bool { return r.Doubted(peer) }
			done := make(chan error, 2)
			healed := make(chan struct{})
			for _, r := range all {
				go func() {
					if how.mode == "idle" {
						done <- nil
						return
					}
					done <- exchange(r, how.mode, 100, func() bool {
						select {
						case <-healed:
							return true
						default:
							return false
						}
					})
				}()
			}
			if how.mode != "idle" {
				until(t, "the exchange has begun", func() bool {
					_, n := all[1].links[0].wireBytes()
					return n > largest
				})
			}
			cut := time.Now()
			var hear []func()
			for rank := range all {
				ways[rank].to.Store(&TCP{Peers: [][]string{{nowhere}, {nowhere}}})
			}
			for _, rank := range how.deaf {
				hear = append(hear, mute(t, all[rank].links[1-rank].current()))
			}
			if how.broken {
				for rank, r := range all {
					r.links[1-rank].breakUp(nil)
				}
				until(t, "there is no connection", both(func(r *Transport, peer int) bool { return r.links[peer].current() == nil }))
			}
			until(t, "both doubt", both(doubted))
			t.Logf("both doubt %v after the cut", time.Since(cut))
			for end := time.Now().Add(leastUnreachable + 100*time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if !both(doubted)() {
					t.Fatal("the doubt has ended, though the cut has not")
				}
			}
			for rank, r := range all {
				if err := r.State(1 - rank); err != nil || r.Gone(1-rank) || r.Said(1-rank) {
					t.Errorf("to rank %d the other is %v", rank, err)
				}
			}
			heal := time.Now()
			for rank := range all {
				ways[rank].to.Store(nil)
			}
			for _, hear := range hear {
				hear()
			}
			until(t, "neither doubts", both(func(r *Transport, peer int) bool { return !r.Doubted(peer) }))
			t.Logf("neither doubts %v after the cut has ended", time.Since(heal))
			close(healed)
			for range 2 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			closeAll(t, all)
		})
	}
}

// perish ends a rank as the end of its process does.
func (t *Transport) perish() {
	for _, l := range t.peers {
		l.stop()
	}
	t.close()
}

// Nobody listens any more where a rank did: it is gone for certain, and the others go on.
func TestRefusedIsGone(t *testing.T) {
	for victim := range 3 {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			t.Parallel()
			all, _ := surviving(t, 3, nil)
			all[victim].perish()
			all = slices.Delete(all, victim, victim+1)
			for _, r := range all {
				until(t, "it is gone", func() bool { return r.Gone(victim) })
				var dead *rdma.PeerError
				if err := r.State(victim); !errors.As(err, &dead) || dead.Kind != rdma.Ended || r.Said(victim) || !r.Doubted(victim) {
					t.Errorf("rank %d: %v, in its own words: %v", r.Rank(), err, r.Said(victim))
				}
			}
			a, b := all[0], all[1]
			if a.State(b.Rank()) != nil || b.State(a.Rank()) != nil || a.Gone(b.Rank()) || b.Gone(a.Rank()) {
				t.Errorf("the others are %v and %v", a.State(b.Rank()), b.State(a.Rank()))
			}
			closeAll(t, all)
		})
	}
}

// A rank is believed when it says of itself that it has left, or gives up.
func TestOwnLastWord(t *testing.T) {
	all, _ := surviving(t, 3, nil)
	if err := all[2].Close(); err != nil {
		t.Error(err)
	}
	until(t, "it has left", func() bool { return errors.Is(all[0].State(2), rdma.ErrLeft) })
	if !all[0].Said(2) || !all[0].Gone(2) {
		t.Errorf("rank 2 has left: said %v, gone %v", all[0].Said(2), all[0].Gone(2))
	}
	all[1].Abort(rdma.HasFailed(1, "an error of its own"))
	until(t, "it has failed", func() bool { return all[0].State(1) != nil })
	if err := all[0].State(1); !all[0].Said(1) || all[0].Gone(1) || !strings.Contains(err.Error(), "an error of its own") {
		t.Errorf("rank 1 gives up: %v, said %v, gone %v", err, all[0].Said(1), all[0].Gone(1))
	}
	closeAll(t, all[:2])
}

// A rank that is left out gets the votes posted to it, and then its connections end. It is refused
// from then on, and told why, whether it dials or is dialled. What it has published stays,
// and the others go on without it.
func TestLeftOut(t *testing.T) {
	for _, how := range []string{"connected", "encrypted", "broken"} {
		for out := range 3 {
			t.Run(fmt.Sprintf("%s, %d", how, out), func(t *testing.T) {
				t.Parallel()
				all, them := surviving(t, 3, func(c *config) {
					if how == "encrypted" {
						c.Encrypt = handshake.Always
					}
				})
				s := rdma.Spec{Bytes: 8, Mode: rdma.Queue(1)}
				boxes, ins := make([]rdma.Outbox, 3), make([][]rdma.Inbox, 3)
				var ranks sync.WaitGroup
				for rank, r := range all {
					ranks.Go(func() {
						others := slices.DeleteFunc([]int{0, 1, 2}, func(r int) bool { return r == rank })
						var err error
						if boxes[rank], err = r.Publish(t.Context(), "box", s, others); err == nil {
							ins[rank], err = r.Subscribe(t.Context(), "box", s, others)
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				ranks.Wait()
				commit := func(rank int, clock uint64) {
					var b []byte
					ctx, stop := context.WithTimeout(t.Context(), fleet.Patience)
					defer stop()
					if err := all[rank].Wait(ctx, func() bool { b, _ = boxes[rank].Begin(); return b != nil }); err != nil {
						t.Fatalf("rank %d, update %d: %v", rank, clock, err)
					}
					binary.LittleEndian.PutUint64(b, clock)
					if err := boxes[rank].Commit(8, rdma.Stamp{Clock: clock}, nil); err != nil {
						t.Fatal(err)
					}
				}
				take := func(rank, from int, clock uint64) {
					in := ins[rank][slices.IndexFunc(ins[rank], func(i rdma.Inbox) bool { return i.From() == from })]
					until(t, fmt.Sprintf("rank %d has update %d of rank %d", rank, clock, from), func() bool {
						u, ok, err := in.Next()
						if err != nil {
							t.Fatal(err)
						}
						intact := ok && binary.LittleEndian.Uint64(u.Data) == clock
						if ok {
							in.Release(u.Seq)
						}
						return intact && u.Clock == clock
					})
				}
				commit(out, 1)
				stay := slices.DeleteFunc([]int{0, 1, 2}, func(r int) bool { return r == out })
				for _, rank := range stay {
					until(t, "its update is here", func() bool {
						in := ins[rank][slices.IndexFunc(ins[rank], func(i rdma.Inbox) bool { return i.From() == out })]
						return in.Published() == 1
					})
				}
				word := landed{kind: vote.Decided, body: strings.Repeat("x", 10)}
				for _, rank := range stay {
					them[rank].leaveOut(out)
					all[rank].Post(out, word.kind, word.arg, []byte(word.body))
					if how == "broken" {
						all[rank].links[out].breakUp(nil)
					}
					all[rank].Review()
					all[rank].Review()
				}
				for _, rank := range stay {
					word.from = rank
					until(t, fmt.Sprintf("rank %d has refused it", rank), func() bool {
						return slices.Contains(them[out].refused(), rank)
					})
					if how != "broken" && !them[out].has(word) {
						t.Errorf("rank %d has not told it so", rank)
					}
					until(t, "the links have ended", func() bool { return all[rank].State(out) != nil && all[out].State(rank) != nil })
					var dead *rdma.PeerError
					if err := all[rank].State(out); !errors.As(err, &dead) || dead.Rank != out || dead.Kind != rdma.Unreachable || !errors.Is(err, errLeftOut) || all[rank].Gone(out) || all[rank].Said(out) {
						t.Errorf("to rank %d it is %v", rank, err)
					}
					if err := all[out].State(rank); !errors.Is(err, errGoneOn) || all[out].Gone(rank) || all[out].Said(rank) {
						t.Errorf("to it rank %d is %v", rank, err)
					}
					take(rank, out, 1)
				}
				for clock := range uint64(5) { // which has no room for what nobody takes
					commit(stay[0], clock+1)
					take(stay[1], stay[0], clock+1)
				}
				closeAll(t, all)
			})
		}
	}
}

// A rank that is away when it is left out finds that out when it is back. It is not waited for.
func TestLeftOutWhileCut(t *testing.T) {
	ways := make([]detour, 2)
	all, them := surviving(t, 2, func(c *config) {
		ways[c.Rank].Wire = tcp.New(c.TCP)
		c.wire = &ways[c.Rank]
	})
	nowhere := newDeaf(t).Addr().String()
	for rank := range all {
		ways[rank].to.Store(&TCP{Peers: [][]string{{nowhere}, {nowhere}}})
	}
	hear := mute(t, all[1].links[0].current())
	until(t, "both doubt", func() bool { return all[0].Doubted(1) && all[1].Doubted(0) })
	them[0].leaveOut(1)
	all[0].Review()
	until(t, "it is left out", func() bool { return errors.Is(all[0].State(1), errLeftOut) })
	if len(them[1].refused()) > 0 || all[1].State(0) != nil {
		t.Errorf("rank 1 knows by now: %v", all[1].State(0))
	}
	for rank := range all {
		ways[rank].to.Store(nil)
	}
	hear()
	until(t, "it knows", func() bool { return errors.Is(all[1].State(0), errGoneOn) })
	if by := them[1].refused(); !slices.Equal(by, []int{0}) {
		t.Errorf("refused by %v", by)
	}
	closeAll(t, all)
}
