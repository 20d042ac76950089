package remote

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/fabric"
	"malt/rdma/fabrictest"
	"malt/rdma/internal/handshake"
	"malt/rdma/internal/mem"
	"malt/rdma/ofi"
	"malt/rdma/rdmatest"
	"malt/rdma/tcp"
)

// never is how long a payload may take on a machine that is busy with other things.
const never = 10 * time.Minute

// openPlacing opens ranks with cards, which place updates of so many bytes; 0: as usual, and small ones go through rings.
// Without open they have none.
func openPlacing(t testing.TB, n, from int, open func() fabric.Carrier) []*Transport {
	return openRanks(t, n, func(c *config) {
		if open != nil {
			c.Fabric, c.PlaceFrom, c.lost = open(), from, never
		}
		c.wire = watch(t, tcp.New(c.TCP))
	})
}

// inMemory opens cards of one network in memory.
func inMemory() func() fabric.Carrier {
	var net fabrictest.Net
	return func() fabric.Carrier { return net.Open() }
}

// pastTheConnection runs a test with cards, and without, by TCP (open is nil), where it has to fail.
func pastTheConnection(t *testing.T, test func(t *testing.T, open func() fabric.Carrier)) {
	t.Run("card", func(t *testing.T) { test(t, inMemory()) })
	t.Run("libfabric", func(t *testing.T) { test(t, func() fabric.Carrier { return libfabric(t) }) })
	t.Run("TCP", func(t *testing.T) { test(t, nil) })
}

// placed is a rank of which no pair may have fallen back to TCP when it closes.
type placed struct {
	settled
	bytes, all, records *atomic.Uint64 // bytes that were placed; that were sent
}

func (p placed) Close() error {
	for _, l := range p.links {
		if l == nil {
			continue
		}
		if why := l.off.Load(); why != nil && l.current() != nil && !errors.Is(*why, errBroken) && !errors.Is(*why, errPeerLeft) {
			p.tb.Errorf("rank %d with %d: %v", p.Rank(), l.peer, *why)
		}
		if s := l.session.Load(); s != nil {
			p.records.Add(s.recorded.Load())
		}
		p.bytes.Add(l.sentPlaced.Load())
		p.all.Add(p.Traffic(l.peer).SentBytes)
	}
	return p.settled.Close()
}

func conformance(t *testing.T, ranks, from int, open func() fabric.Carrier) {
	var bytes, all, records atomic.Uint64
	rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport {
		ts := settle(t, openPlacing(t, n, from, open))
		for i := range ts {
			ts[i] = placed{ts[i].(settled), &bytes, &all, &records}
		}
		return ts
	}, ranks)
	t.Logf("%d of %d bytes were placed; %d records", bytes.Load(), all.Load(), records.Load())
	if bytes.Load() == 0 || from == 0 && records.Load() == 0 {
		t.Error("none")
	}
}

func TestConformanceOverACard(t *testing.T) { conformance(t, 3, 1, inMemory()) }

// libfabric moves bytes by an RDMA device, as make test-rdma emulates one, or else through the kernel.
func libfabric(t *testing.T) fabric.Carrier {
	provider := "tcp;ofi_rxm"
	if devices, _ := os.ReadDir("/sys/class/infiniband"); len(devices) > 0 {
		provider = "verbs;ofi_rxm"
	}
	c, err := ofi.Open(provider, os.Getenv("MALT_LIBFABRIC"), 8)
	if errors.Is(err, fabric.ErrNoLibrary) {
		if os.Getenv("MALT_NEED") == "libfabric" {
			t.Fatal(err)
		}
		t.Skipf("skipped: apt install libfabric1: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConformanceOverLibfabric(t *testing.T) {
	ranks := 3
	if testing.Short() {
		ranks = 2
	}
	conformance(t, ranks, 1, func() fabric.Carrier { return libfabric(t) })
}

func TestConformanceThroughRings(t *testing.T) { conformance(t, 3, 0, inMemory()) }

func TestConformanceThroughRingsOfLibfabric(t *testing.T) {
	conformance(t, 2, 0, func() fabric.Carrier { return libfabric(t) })
}

// faulty is a card to which something happens at its n-th call of some kind, from 1, once.
type faulty struct {
	fabric.Carrier
	left atomic.Int64 // calls until then

	write    func(c fabric.Carrier, op *fabric.Op) error
	register func(c fabric.Carrier, m mem.Pinned, a fabric.Access) (fabric.Region, error)
	poll     func(c fabric.Carrier, ev []fabric.Event) int
}

func (f *faulty) now() bool { return f.left.Add(-1) == 0 }

func (f *faulty) Write(op *fabric.Op) error {
	if f.write != nil && f.now() {
		return f.write(f.Carrier, op)
	}
	return f.Carrier.Write(op)
}

func (f *faulty) Register(m mem.Pinned, a fabric.Access) (fabric.Region, error) {
	if f.register != nil && f.now() {
		return f.register(f.Carrier, m, a)
	}
	return f.Carrier.Register(m, a)
}

func (f *faulty) Poll(ev []fabric.Event) int {
	n := f.Carrier.Poll(ev)
	if f.poll != nil && n > 0 && f.now() {
		return f.poll(f.Carrier, ev[:n])
	}
	return n
}

// cardOf is f for a rank, which fails at its n-th call, and other cards for the others. None is in a hurry.
func (f *faulty) cardOf(rank int, n int64) func(c *config) {
	open := inMemory()
	f.left.Store(n)
	return func(c *config) {
		if c.Fabric, c.lost, c.late = open(), never, 1<<30; c.Rank == rank {
			f.Carrier, c.Fabric = c.Fabric, f
		}
	}
}

// begins has rank 0 send updates to rank 1 until that happens.
func (f *faulty) begins(t *testing.T, all []*Transport) {
	t.Helper()
	out, _ := pair(t, all, rdma.Spec{Bytes: size})
	for clock := uint64(1); f.left.Load() > 0; clock++ {
		if err := put(all[0], out, size, clock); err != nil {
			t.Fatal(err)
		}
	}
}

// size is that of an update that is worth placing.
const size = 20_000

// lockstep has all ranks send one another updates, clock after clock, and read all of the same clock. With
// rooms they begin when there is one for each box, or never will be. What it returns is a digest of all that each has read.
func lockstep(t *testing.T, all []*Transport, clocks uint64, rooms bool) []string {
	t.Helper()
	return inTurns(t, all, clocks, func(*link) bool { return rooms }, rdma.Spec{Bytes: size, Mode: rdma.Queue(2)})
}

// inTurns does so with other updates, and with rooms between some ranks.
func inTurns(t *testing.T, all []*Transport, clocks uint64, rooms func(l *link) bool, spec rdma.Spec) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), never)
	defer cancel()
	read := make([]string, len(all))
	var ranks sync.WaitGroup
	for rank, tr := range all {
		ranks.Go(func() {
			var others []int
			for r := range all {
				if r != rank {
					others = append(others, r)
				}
			}
			out, err := tr.Publish(ctx, "box", spec, others)
			if err != nil {
				t.Error(err)
				return
			}
			ins, err := tr.Subscribe(ctx, "box", spec, others)
			if err != nil {
				t.Error(err)
				return
			}
			for _, in := range ins {
				p := in.(*inbox).replica
				if rooms(p.link) && spec.Mode == rdma.ByClock {
					p.link.ringing()
				}
				for ; rooms(p.link) && spec.Mode != rdma.ByClock && !p.hasRoom() && p.link.off.Load() == nil; runtime.Gosched() {
					if ctx.Err() != nil {
						t.Errorf("rank %d: there is no room for rank %d: %v", rank, in.From(), ctx.Err())
						return
					}
				}
			}
			got := sha256.New()
			for clock := uint64(1); clock <= clocks; clock++ {
				var b []byte
				err := tr.Wait(ctx, func() bool {
					b, err = out.Begin()
					return b != nil || err != nil
				})
				for i := range b {
					b[i] = byte(i*rank) + byte(clock)
				}
				if err = errors.Join(err, out.Commit(spec.Bytes, rdma.Stamp{Clock: clock}, nil)); err != nil {
					t.Errorf("rank %d, clock %d: %v", rank, clock, err)
					return
				}
				for _, in := range ins {
					if err := tr.Wait(ctx, func() bool {
						next := in.Next
						if spec.Mode == rdma.ByClock {
							next = func() (rdma.Update, bool, error) { return in.At(clock) }
						}
						u, ok, err := next()
						if ok = ok && u.Clock == clock; ok {
							got.Write(u.Data)
							in.Release(u.Seq)
						}
						return ok || err != nil
					}); err != nil {
						t.Errorf("rank %d, clock %d of rank %d: %v", rank, clock, in.From(), err)
						return
					}
				}
			}
			read[rank] = hex.EncodeToString(got.Sum(nil))
		})
	}
	ranks.Wait()
	return read
}

func (p *replica) hasRoom() bool {
	p.rooms.lock.Lock()
	defer p.rooms.lock.Unlock()
	return p.rooms.out.number != 0
}

// Payload does not go over the connection: of each update, less than 400 bytes do. Only those of a box that
// are on their way before its first room is known can, which are two.
func TestNoPayloadOverTheConnection(t *testing.T) {
	const ranks, clocks = 3, 100
	pastTheConnection(t, func(t *testing.T, open func() fabric.Carrier) {
		all := openPlacing(t, ranks, 0, open)
		defer closeAll(t, all)
		lockstep(t, all, clocks, open != nil)
		for rank, tr := range all {
			for peer := range all {
				n := tr.Traffic(peer)
				if rank == peer {
					continue
				}
				byTCP := n.SentBytes - n.SentPlaced
				none := n.SentBytes == clocks*size && byTCP <= 2*size && n.SentWire < byTCP+400*clocks
				if back := all[peer].Traffic(rank).ReceivedPlaced; none != (open != nil) || back != n.SentPlaced {
					t.Errorf("rank %d to %d: %+v, of which %d were found there", rank, peer, n, back)
				}
			}
		}
	})
}

// bytesSent is what the kernel has sent over the socket of a connection.
func bytesSent(t *testing.T, l *link) uint64 {
	t.Helper()
	return tcpInfo(t, l.current().Conn.(*watchedConn).Conn.(syscall.Conn)).Bytes_sent
}

// tcpInfo is what the kernel says of a socket.
func tcpInfo(t *testing.T, of syscall.Conn) *unix.TCPInfo {
	t.Helper()
	raw, err := of.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	if failed := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	return info
}

// In step, all of each update goes past the connection, from the eleventh on: less than 400 bytes go over its socket.
func TestSyncsPastTheSocket(t *testing.T) {
	const bytes, first = 1 << 20, 10
	last := uint64(first + 1000)
	if testing.Short() {
		last = first + 50
	}
	pastTheConnection(t, func(t *testing.T, open func() fabric.Carrier) {
		all := openPlacing(t, 2, 0, open)
		defer closeAll(t, all)
		ctx, cancel := context.WithTimeout(t.Context(), never)
		defer cancel()
		var ranks sync.WaitGroup
		for rank, tr := range all {
			ranks.Go(func() {
				spec := rdma.Spec{Bytes: bytes, Mode: rdma.ByClock}
				out, err := tr.Publish(ctx, "box", spec, []int{1 - rank})
				if err != nil {
					t.Error(err)
					return
				}
				ins, err := tr.Subscribe(ctx, "box", spec, []int{1 - rank})
				if err != nil {
					t.Error(err)
					return
				}
				if open != nil {
					ringing(tr) // from here on a room is offered before the next clock
				}
				l := tr.links[1-rank]
				var wire, placed uint64
				for clock := uint64(1); clock <= last; clock++ {
					b, err := out.Begin()
					if err == nil {
						binary.LittleEndian.PutUint64(b[bytes-8:], clock)
						err = out.Commit(bytes, rdma.Stamp{Clock: clock}, nil)
					}
					err = errors.Join(err, tr.Wait(ctx, func() bool {
						u, ok, failed := ins[0].At(clock)
						if ok = ok && u.Clock == clock; ok && binary.LittleEndian.Uint64(u.Data[bytes-8:]) != clock {
							t.Errorf("clock %d ends with %d", clock, u.Data[bytes-8:])
						}
						err = failed
						return ok || err != nil
					}))
					if err != nil {
						t.Errorf("rank %d, clock %d: %v", rank, clock, err)
						return
					}
					if clock == first {
						wire, placed = bytesSent(t, l), l.sentPlaced.Load()
					}
				}
				wire, placed = bytesSent(t, l)-wire, l.sentPlaced.Load()-placed
				t.Logf("rank %d: %d syncs of %d bytes: %d past the socket, %d over it", rank, last-first, bytes, placed, wire)
				past := wire < 400*(last-first) && placed >= (last-first-1)*bytes
				if past != (open != nil) {
					t.Error("expected all of it past the socket, and without a card none")
				}
			})
		}
		ranks.Wait()
	})
}

// A box that is read from when the cards are a pair has a room before its first update.
func TestFirstRoom(t *testing.T) {
	all := openRinging(t, inMemory())
	defer closeAll(t, all)
	_, in := pair(t, all, rdma.Spec{Bytes: size})
	for began := time.Now(); !in.(*inbox).replica.hasRoom(); runtime.Gosched() {
		if time.Since(began) > fleet.Patience {
			t.Fatal("the box has no room before its first update")
		}
	}
}

// A rank that fails says why, also while an update waits for a write that does not end.
func TestAbortWhileAnUpdateWaits(t *testing.T) {
	stuck := &faulty{write: func(fabric.Carrier, *fabric.Op) error { return nil }}
	all := openRanks(t, 2, stuck.cardOf(0, 2)) // behind the probe
	defer closeAll(t, all)
	stuck.begins(t, all)
	all[0].Abort(rdma.HasFailed(0, "on purpose"))
	ctx, cancel := context.WithTimeout(t.Context(), fleet.Patience)
	defer cancel()
	_ = all[1].Wait(ctx, func() bool { return all[1].State(0) != nil })
	if err := all[1].State(0); err == nil || !strings.Contains(err.Error(), "on purpose") {
		t.Errorf("its peer knows: %v", err)
	}
}

// A rank that leaves waits for a stopped peer, whose card needs its process, no longer than for a silent host.
func TestCloseBesideAStoppedPeer(t *testing.T) {
	stuck := &faulty{write: func(fabric.Carrier, *fabric.Op) error { return nil }}
	all, _ := surviving(t, 2, stuck.cardOf(0, 2))
	stuck.begins(t, all)
	s := all[1].links[0].session.Load()
	s.in.turn.Lock()
	closed := make(chan error, 1)
	go func() { closed <- all[0].Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(fleet.Patience):
		t.Error("it waits for ever")
	}
	s.in.turn.Unlock()
	if err := all[1].Close(); err != nil {
		t.Error(err)
	}
}

// A reader that had no memory for an update offers no room for the next, once there is some: its owner would not use it,
// and wait for another.
func TestMemoryAfterThereWasNone(t *testing.T) {
	probe := make(chan func() error, 1)
	held := &faulty{write: func(c fabric.Carrier, op *fabric.Op) error {
		probe <- func() error { return c.Write(op) }
		return nil
	}}
	change := held.cardOf(0, 1)
	all := openRanks(t, 2, func(c *config) {
		change(c)
		c.wire = watch(t, tcp.New(c.TCP))
	})
	defer closeAll(t, all)
	words := wordsOf(t, all, 1)
	out, in := pair(t, all, rdma.Spec{Bytes: size})
	p := in.(*inbox).replica
	turn, stride := &all[1].links[0].session.Load().in.turn, p.slots.layout.Stride
	turn.Lock() // of who makes the slots
	p.slots.layout.Stride = 1 << 60
	turn.Unlock()
	if err := put(all[0], out, size, 1); err != nil {
		t.Fatal(err)
	}
	until(t, "an update finds no memory", func() bool { return p.failed.Load() != nil })
	p.slots.layout.Stride = stride
	if err := (<-probe)(); err != nil {
		t.Fatal(err)
	}
	until(t, "the owner hears of a room, or that there is none", func() bool { return count(all[1], grants) > 0 })
	for clock := uint64(2); clock < 10; clock++ {
		if err := put(all[0], out, size, clock); err != nil {
			t.Fatal(err)
		}
		words[0].Set(0, clock)
		until(t, "a word behind an update arrives", func() bool { v, err := words[1].Get(0, 0); return v == clock || err != nil })
	}
}

// A word that is set while an update waits for the end of its write reaches the peer before the rank has left.
func TestWordWhileAnUpdateWaits(t *testing.T) {
	writes := make(chan func() error, 1)
	held := &faulty{write: func(c fabric.Carrier, op *fabric.Op) error {
		writes <- func() error { return c.Write(op) }
		return nil
	}}
	all := openRanks(t, 2, held.cardOf(0, 2)) // behind the probe
	words := wordsOf(t, all, 1)
	out, in := pair(t, all, rdma.Spec{Bytes: size})
	l := all[0].links[1]
	s := l.session.Load()
	for p := in.(*inbox).replica; !p.hasRoom(); {
		runtime.Gosched()
	}
	for granted := false; !granted; runtime.Gosched() {
		s.turn.Lock()
		granted = s.relays[0].placing.granted
		s.turn.Unlock()
	}
	s.turn.Lock() // one look sees the update, and that it is the last
	if err := errors.Join(put(all[0], out, size, 1), out.Close()); err != nil {
		t.Fatal(err)
	}
	s.turn.Unlock()
	write := <-writes
	words[0].Set(0, 7)
	closed := make(chan error, 1)
	go func() { closed <- all[0].Close() }()
	for !l.leaving.Load() {
		runtime.Gosched()
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), fleet.Patience)
	defer cancel()
	if err := all[1].Wait(ctx, func() bool { return all[1].State(0) != nil }); err != nil {
		t.Fatal(err)
	}
	if v, err := words[1].Get(0, 0); v != 7 {
		t.Errorf("rank 0 has left, and its word is %d, %v", v, err)
	}
	if err := errors.Join(<-closed, all[1].Close()); err != nil {
		t.Error(err)
	}
}

// After the last number of a room comes the first again: those of rings are larger, and 0 is none.
func TestNumbersOfRooms(t *testing.T) {
	c, err := newCard(inMemory()(), 1)
	if err != nil {
		t.Fatal(err)
	}
	go c.run()
	defer c.close()
	c.last = ringNumbers - 2
	for _, want := range []uint32{ringNumbers - 1, 1, 2} {
		if n := c.number(nil); n != want {
			t.Errorf("%d, expected %d", n, want)
		}
	}
}

// Why updates do not go by RDMA is data, as is how much memory a process would have to be allowed to lock.
func TestWhyNoRDMA(t *testing.T) {
	var net fabrictest.Net
	short := &fabric.MemlockError{Limit: 1 << 20, Need: 22 << 20}
	open := func(c *config) { c.Fabric, c.lost = net.Open(), never }
	for _, c := range []struct {
		name   string
		change func(c *config)
		want   int32
		need   uint64
	}{
		{"on", open, 1, 0},
		{"only one has a card", func(c *config) {
			if c.Rank == 0 {
				open(c)
			}
		}, 2, 0},
		{"off", func(c *config) { c.NoFabric = fabric.ErrOff }, int32(fabric.ErrOff), 0},
		{"no device", func(c *config) { c.NoFabric = fabric.ErrNoDevice }, int32(fabric.ErrNoDevice), 0},
		{"no library", func(c *config) { c.NoFabric = fmt.Errorf("%w: why", fabric.ErrNoLibrary) }, int32(fabric.ErrNoLibrary), 0},
		{"an endpoint is not locked", func(c *config) { c.NoFabric = fmt.Errorf("verbs: %w", short) }, int32(fabric.ErrMemlock), short.Need},
		{"a slot is not locked", func(c *config) {
			open(c)
			f := &faulty{Carrier: c.Fabric, register: func(fabric.Carrier, mem.Pinned, fabric.Access) (fabric.Region, error) { return nil, short }}
			f.left.Store(3) // those of newCard come first
			c.Fabric = f
		}, int32(fabric.ErrMemlock), short.Need},
		{"nothing is locked", func(c *config) {
			open(c)
			f := &faulty{Carrier: c.Fabric, register: func(fabric.Carrier, mem.Pinned, fabric.Access) (fabric.Region, error) { return nil, short }}
			f.left.Store(1)
			c.Fabric = f
		}, int32(fabric.ErrMemlock), short.Need},
		{"no ring", func(c *config) {
			open(c)
			f := &faulty{Carrier: c.Fabric, register: func(fabric.Carrier, mem.Pinned, fabric.Access) (fabric.Region, error) {
				return nil, errors.New("too many regions")
			}}
			f.left.Store(1)
			c.Fabric = f
		}, int32(fabric.ErrFailed), 0},
		{"encrypted", func(c *config) { open(c); c.Encrypt = handshake.Always }, int32(fabric.ErrEncrypted), 0},
		{"broken", func(c *config) { c.NoFabric = errors.New("fi_enable: why") }, int32(fabric.ErrFailed), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := openRanks(t, 2, c.change)
			defer closeAll(t, all)
			lockstep(t, all, 8, c.want == 1)
			for c.need > 0 && all[0].Traffic(1).RDMA == 2 {
				runtime.Gosched() // until the cards are a pair, and a room is to be offered
			}
			if got := all[0].Traffic(1).RDMA; got != c.want {
				t.Errorf("%d, expected %d", got, c.want)
			}
			if lack := all[0].Lacks(); (lack != nil) != (c.need > 0) || lack != nil && (lack.Need != c.need || lack.Limit != short.Limit) {
				t.Errorf("%+v", lack)
			}
		})
	}
}

// touching is a card that writes into all of its memory until it is closed.
type touching struct {
	fabric.Carrier
	memory []mem.Pinned
	closed bool
}

func (c *touching) Register(m mem.Pinned, a fabric.Access) (fabric.Region, error) {
	c.memory = append(c.memory, m)
	return c.Carrier.Register(m, a)
}

func (c *touching) Close() error {
	for _, m := range c.memory {
		m.Bytes()[0]++ // a fault, if it was given back
	}
	c.closed = true
	return c.Carrier.Close()
}

// A card is closed before its memory is given back, also that which is kept for it.
func TestMemoryOutlivesItsCard(t *testing.T) {
	open := &touching{Carrier: inMemory()()}
	c, err := newCard(open, 2)
	if err != nil {
		t.Fatal(err)
	}
	go c.run()
	l, err := box.NewLayout(rdma.Spec{Bytes: size}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := newSlots(l, c)
	if err := s.reserve(0, 0, size); err != nil {
		t.Fatal(err)
	}
	if _, err := s.region(0, fabric.Target); err != nil {
		t.Fatal(err)
	}
	s.lose(0)
	if err := s.free(); err != nil {
		t.Fatal(err)
	}
	if c.close(); !open.closed || len(open.memory) != 3 {
		t.Errorf("closed: %v; of %d regions", open.closed, len(open.memory))
	}
}

// counting is a card that knows how many of its regions are open.
type counting struct {
	fabric.Carrier
	open int
}

type countedRegion struct {
	fabric.Region
	c *counting
}

func (c *counting) Register(m mem.Pinned, a fabric.Access) (fabric.Region, error) {
	r, err := c.Carrier.Register(m, a)
	c.open++
	return countedRegion{r, c}, err
}

func (r countedRegion) Close() error {
	r.c.open--
	return r.Region.Close()
}

// Memory of a box that is given back is no card's any more.
func TestRegionsEndWithTheirMemory(t *testing.T) {
	open := &counting{Carrier: inMemory()()}
	c, err := newCard(open, 2)
	if err != nil {
		t.Fatal(err)
	}
	go c.run()
	defer c.close()
	l, err := box.NewLayout(rdma.Spec{Bytes: size}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, before := newSlots(l, c), open.open
	for i := range 2 {
		if err := s.reserve(i, 0, size); err != nil {
			t.Fatal(err)
		}
		if _, err := s.region(i, fabric.Target); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.free(); err != nil || open.open != before {
		t.Errorf("%d regions are open, expected %d; %v", open.open, before, err)
	}
}

// Updates to a rank that has left in good order went by RDMA, if they did.
func TestPeerThatHasLeft(t *testing.T) {
	all := openRinging(t, inMemory())
	out, in := pair(t, all, rdma.Spec{Bytes: 8})
	if err := errors.Join(put(all[0], out, 8, 1), got(all[1], in, 8, 1), all[1].Close()); err != nil {
		t.Fatal(err)
	}
	if err := all[0].Wait(t.Context(), func() bool { return all[0].State(1) != nil }); err != nil {
		t.Fatal(err)
	}
	if n := all[0].Traffic(1).RDMA; n != 1 {
		t.Errorf("%d, expected 1", n)
	}
	if err := all[0].Close(); err != nil {
		t.Error(err)
	}
}

// A provider that was named is used, or there is no job.
func TestOpenWithACardThatCannotBeUsed(t *testing.T) {
	broken := errors.New("too many regions")
	c := configure(t, 1)[0]
	f := &faulty{Carrier: inMemory()(), register: func(fabric.Carrier, mem.Pinned, fabric.Access) (fabric.Region, error) { return nil, broken }}
	f.left.Store(2)
	c.Fabric, c.FabricNeeded = f, true
	if _, err := join(t.Context(), c); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// Whatever happens to a card, at whichever of its calls, all arrives, and is what arrives by TCP. Where
// a write or its payload may be lost, the connection is made again, and is what brings updates from then on.
func TestFaultsOfACard(t *testing.T) {
	const ranks, clocks = 3, 8
	queue, small := rdma.Spec{Bytes: size, Mode: rdma.Queue(2)}, rdma.Spec{Bytes: 2000, Mode: rdma.ByClock}
	byTCP := map[int][]string{}
	for _, spec := range []rdma.Spec{queue, small} {
		all := openRanks(t, ranks, nil)
		byTCP[spec.Bytes] = inTurns(t, all, clocks, func(*link) bool { return false }, spec)
		closeAll(t, all)
	}
	broken := errors.New("broken on purpose")
	for _, c := range []struct {
		name  string
		off   bool // by then a pair may go by TCP
		fault func() *faulty
	}{
		{"none", false, func() *faulty { return &faulty{} }},
		{"busy", false, func() *faulty {
			return &faulty{write: func(fabric.Carrier, *fabric.Op) error { return fabric.ErrBusy }}
		}},
		{"refused write", true, func() *faulty {
			return &faulty{write: func(fabric.Carrier, *fabric.Op) error { return broken }}
		}},
		{"failed write", true, func() *faulty {
			return &faulty{poll: func(_ fabric.Carrier, ev []fabric.Event) int {
				for i := range ev {
					if ev[i].Op != nil {
						ev[i].Err = broken
					}
				}
				return len(ev)
			}}
		}},
		{"lost numbers", true, func() *faulty {
			return &faulty{poll: func(_ fabric.Carrier, ev []fabric.Event) int {
				return len(slices.DeleteFunc(ev, func(e fabric.Event) bool { return e.Number != 0 }))
			}}
		}},
		{"numbers that come twice, and those of nobody", false, func() *faulty {
			return &faulty{poll: func(c fabric.Carrier, ev []fabric.Event) int {
				more := append(slices.Clone(ev), fabric.Event{Number: 1 << 30}, fabric.Event{Number: 1<<32 - 1}, fabric.Event{Err: broken})
				for _, e := range ev {
					if e.Op == nil {
						more = append(more, e)
					}
				}
				return copy(ev[:cap(ev)], more)
			}}
		}},
		{"late", true, func() *faulty { // no write ends from then on
			f := &faulty{}
			f.poll = func(_ fabric.Carrier, ev []fabric.Event) int {
				f.left.Store(1)
				return len(slices.DeleteFunc(ev, func(e fabric.Event) bool { return e.Op != nil }))
			}
			return f
		}},
		{"busy for ever", true, func() *faulty {
			f := &faulty{}
			f.write = func(fabric.Carrier, *fabric.Op) error {
				f.left.Store(1)
				return fabric.ErrBusy
			}
			return f
		}},
		{"no memory", false, func() *faulty {
			return &faulty{register: func(fabric.Carrier, mem.Pinned, fabric.Access) (fabric.Region, error) { return nil, broken }}
		}},
	} {
		for _, spec := range []rdma.Spec{queue, small} {
			overdue := c.name == "late" || c.name == "busy for ever"
			t.Run(map[int]string{queue.Bytes: c.name, small.Bytes: c.name + ", ring"}[spec.Bytes], func(t *testing.T) {
				for at := int64(1); at <= 40; at += 3 {
					var net fabrictest.Net
					all := openRanks(t, ranks, func(config *config) {
						f := c.fault()
						if f.Carrier = net.Open(); config.Rank == 1 {
							f.left.Store(at + 2)                      // those of newCard
							config.late, config.Survives = 2, overdue // so it looks more often
						}
						config.Fabric, config.lost = f, never
						if c.off && !overdue && config.Rank == 1 {
							config.lost = 100 * time.Millisecond
						}
					})
					rooms := func(l *link) bool {
						return (!c.off || overdue) && c.name != "no memory" || l.rank.cfg.Rank != 1 && l.peer != 1
					}
					if read := inTurns(t, all, clocks, rooms, spec); !slices.Equal(read, byTCP[spec.Bytes]) {
						t.Errorf("at call %d: other bytes have arrived than by TCP", at)
					}
					placed := uint64(0)
					for _, tr := range all {
						for peer := range all {
							placed += tr.Traffic(peer).SentPlaced
							if l := tr.links[peer]; l != nil && l.off.Load() != nil && (!c.off || tr.Rank() != 1 && peer != 1) {
								t.Errorf("at call %d: rank %d with %d: %v", at, tr.Rank(), peer, *l.off.Load())
							}
						}
					}
					if placed == 0 {
						t.Errorf("at call %d: nothing was placed", at)
					}
					closeAll(t, all)
				}
			})
		}
	}
}
