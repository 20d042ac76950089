package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/fabric"
	"malt/rdma/internal/mem"
	"malt/rdma/ofi"
	"malt/rdma/tcp"
	"malt/rdma/wire"
)

// verbs skips what needs a device that moves bytes by itself, such as Soft-RoCE in the emulated machine of
// tests/rdma.
func verbs(t *testing.T) {
	if devices, _ := os.ReadDir("/sys/class/infiniband"); len(devices) == 0 {
		t.Skip("skipped: no RDMA device: make test-rdma emulates one")
	}
}

// most is the length of the box of placingRank.
const most = 1 << 20

// placingRank is a process of two: rank 0 sends updates to rank 1, by RDMA or by TCP (the second argument). It is told
//
//	move N BYTES    the next N updates; rank 0 says when the last is on its way, and how many bytes were placed, rank 1
//	                when it has them
//	slots           rank 1 says where its copies are
func placingRank(r *fleet.Rank) error {
	w, err := meet(r, r.Args[0])
	if err != nil {
		return err
	}
	c := Config{Rank: r.Rank, Size: r.Size}
	if r.Args[1] == "rdma" {
		if c.Fabric, err = ofi.Open("verbs;ofi_rxm", "", r.Size); err != nil {
			return err
		}
	}
	ctx := context.Background()
	t, err := Open(ctx, c, w)
	if err != nil {
		return err
	}
	defer t.Close()
	spec := rdma.Spec{Bytes: most, Mode: rdma.Queue(2)}
	var out rdma.Outbox
	var ins []rdma.Inbox
	if r.Rank == 0 {
		out, err = t.Publish(ctx, "box", spec, []int{1})
	} else {
		ins, err = t.Subscribe(ctx, "box", spec, []int{0})
	}
	clock := uint64(0)
	for r.Say("ready"); err == nil; {
		switch line := strings.Fields(r.Hear()); line[0] {
		case "move":
			n, _ := strconv.Atoi(line[1])
			size, _ := strconv.Atoi(line[2])
			for range n {
				clock++
				if out != nil {
					err = errors.Join(err, put(t, out, size, clock))
				} else {
					err = errors.Join(err, got(t, ins[0], size, clock))
				}
			}
			if ins != nil && c.Fabric != nil {
				ins[0].(*inbox).replica.granted()
			}
			for calm := ins != nil; !calm; runtime.Gosched() { // until the last is on its way
				_, _, calm, _ = t.Frames(1)
			}
			r.Say("moved %d", t.Traffic(1-r.Rank).SentPlaced)
		case "slots":
			s := ins[0].(*inbox).replica.slots
			var at []string
			for i := range s.each {
				if b := s.slot(i); b != nil {
					at = append(at, fmt.Sprint(uintptr(unsafe.Pointer(&b[headBytes]))))
				}
			}
			r.Say("slots %s", strings.Join(at, " "))
		case "finish":
			return t.Close()
		}
	}
	return err
}

func put(t *Transport, out rdma.Outbox, size int, clock uint64) (err error) {
	var b []byte
	werr := t.Wait(context.Background(), func() bool {
		b, err = out.Begin()
		return b != nil || err != nil
	})
	if err = errors.Join(err, werr); err == nil {
		fill(b[:size], 0, clock)
		err = out.Commit(size, rdma.Stamp{Clock: clock}, nil)
	}
	return err
}

func got(t *Transport, in rdma.Inbox, size int, clock uint64) (err error) {
	var u rdma.Update
	werr := t.Wait(context.Background(), func() bool {
		var ok bool
		u, ok, err = in.Next()
		return ok || err != nil
	})
	if err = errors.Join(err, werr); err != nil {
		return err
	}
	first := make([]byte, 8)
	fill(first, 0, clock)
	if u.Clock != clock || len(u.Data) != size || !bytes.Equal(u.Data[:8], first) || !bytes.Equal(u.Data[8:], u.Data[:size-8]) {
		err = fmt.Errorf("clock %d is torn, or is %d", clock, u.Clock)
	}
	in.Release(u.Seq)
	return err
}

// granted waits until the owner has been told of a room.
func (p *replica) granted() {
	for !p.hasRoom() {
		runtime.Gosched()
	}
	s := p.link.session.Load()
	s.turn.Lock() // once the round that has offered it has ended
	defer s.turn.Unlock()
}

// both starts the two processes, which move updates until all slots are there and, by RDMA, one was placed: so there
// is a room for the next. clock is that of the last.
func both(t *testing.T, way string) (f []*fleet.Process, clock uint64) {
	f = introduced(fleet.Start(t, "placing", 2, "127.0.0.1", way))
	for placed := 0; clock < 3 || way == "rdma" && placed == 0; clock++ {
		placed = move(t, f, 1, most)
	}
	return f, clock
}

// move returns how many bytes were placed by now.
func move(t *testing.T, f []*fleet.Process, n, size int) int {
	t.Helper()
	for _, p := range f {
		p.Tell(fmt.Sprintf("move %d %d", n, size))
	}
	placed, err := strconv.Atoi(f[0].Expect("moved"))
	if err != nil {
		t.Fatal(err)
	}
	f[1].Expect("moved")
	return placed
}

// The receiving process reads no payload: less than a thousandth of what arrives. And when it is stopped, an update is
// in its memory all the same, and is found when it goes on. Over TCP it reads all, and the update is not there before.
func TestVerbsReceiver(t *testing.T) {
	verbs(t)
	updates := 1024
	if testing.Short() {
		updates = 8
	}
	for way, updates := range map[string]int{"rdma": updates, "tcp": 8} {
		f, clock := both(t, way)
		readsNothing(t, f, way, updates)
		arrivesWhileStopped(t, f, way, clock+uint64(updates)+1)
		for _, p := range f {
			p.Tell("finish")
			p.End()
		}
	}
}

func readsNothing(t *testing.T, f []*fleet.Process, way string, updates int) {
	before := readBy(t, f[1].Pid())
	move(t, f, updates, most)
	read := readBy(t, f[1].Pid()) - before
	t.Logf("%s: it has read %d bytes for %d", way, read, most*updates)
	if byTCP := read >= most*updates; byTCP != (way == "tcp") || !byTCP && read > most*updates/1000 {
		t.Errorf("%s: it has read %d bytes for %d", way, read, most*updates)
	}
}

// readBy is what a process has read by system calls.
func readBy(t *testing.T, pid int) (n int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if _, serr := fmt.Sscanf(string(b), "rchar: %d", &n); err != nil || serr != nil {
		t.Fatal(err, serr)
	}
	return n
}

// arrivesWhileStopped moves the update of that clock.
func arrivesWhileStopped(t *testing.T, f []*fleet.Process, way string, clock uint64) {
	const size = 64 << 10 // which the buffers of a connection hold
	f[1].Tell("slots")
	slots := strings.Fields(f[1].Expect("slots"))
	f[1].Signal(syscall.SIGSTOP)
	for !mem.Stopped(f[1].Pid()) {
		runtime.Gosched()
	}
	ran := ticks(t, f[1].Pid())
	move := fmt.Sprintf("move 1 %d", size)
	f[0].Tell(move)
	f[0].Expect("moved")
	want := make([]byte, size)
	fill(want, 0, clock)
	there := 0
	for _, at := range slots {
		if bytes.Equal(memoryOf(t, f[1].Pid(), at, size), want) {
			there++
		}
	}
	if expected := map[string]int{"rdma": 1, "tcp": 0}[way]; there != expected {
		t.Errorf("%s: the update is in %d of the slots %v of the stopped rank, expected %d", way, there, slots, expected)
	}
	if now := ticks(t, f[1].Pid()); now != ran {
		t.Errorf("%s: the stopped rank has run: %s ticks, before %s", way, now, ran)
	}
	f[1].Signal(syscall.SIGCONT)
	f[1].Tell(move)
	f[1].Expect("moved")
}

func memoryOf(t *testing.T, pid int, at string, n int) []byte {
	t.Helper()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	address, _ := strconv.ParseInt(at, 10, 64)
	b := make([]byte, n)
	if _, err := memory.ReadAt(b, address); err != nil {
		t.Fatal(err)
	}
	return b
}

// ticks are those of the processor, in both modes.
func ticks(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(stat))[13:15], " ")
}

// revoking is a card that closes the region of one room, which a peer knows and writes into.
type revoking struct {
	fabric.Carrier
	targets int // until then
}

func (r *revoking) Register(m mem.Pinned, a fabric.Access) (fabric.Region, error) {
	region, err := r.Carrier.Register(m, a)
	if err == nil && a == fabric.Target {
		if r.targets--; r.targets == 0 {
			err = region.Close()
		}
	}
	return region, err
}

// dials counts the connections that a rank makes.
type dials struct {
	wire.Wire
	made *atomic.Int64
}

func (d dials) Dial(ctx context.Context, peer int, given, apart time.Duration) (wire.Conn, error) {
	c, err := d.Wire.Dial(ctx, peer, given, apart)
	if err == nil {
		d.made.Add(1)
	}
	return c, err
}

// A region that is closed under a write costs one connection, and nothing is lost: the bits are those of TCP.
func TestVerbsRegionClosedUnderAWrite(t *testing.T) {
	verbs(t)
	const ranks, clocks, jobs = 2, 8, 20
	byTCP := openRanks(t, ranks, nil)
	by := lockstep(t, byTCP, clocks, false)
	closeAll(t, byTCP)
	for job := range jobs {
		var made atomic.Int64
		all := openRanks(t, ranks, func(c *config) {
			c.Fabric, c.lost = libfabric(t), never
			if c.Rank == 1 { // a target for probes, and the slots of its copy
				c.Fabric = &revoking{c.Fabric, 2 + job%2}
				c.wire = dials{tcp.New(c.TCP), &made} // the other one only asks whether it is there
			}
		})
		if read := lockstep(t, all, clocks, true); !slices.Equal(read, by) {
			t.Errorf("job %d: other bytes have arrived than by TCP", job)
		}
		// With the first the way fails, and with it what is under way in the other direction.
		if a, b := all[0].links[1].off.Load(), all[1].links[0].off.Load(); a == nil || b == nil || errors.Is(*a, errBroken) && errors.Is(*b, errBroken) {
			t.Errorf("job %d: no write has failed", job)
		}
		if made.Load() != 2 {
			t.Errorf("job %d: %d connections were made, expected 2", job, made.Load())
		}
		closeAll(t, all)
	}
}

// zombie is a card with a second one, which outlives it: that of a rank that was cut off, and goes on to write.
type zombie struct {
	fabric.Carrier
	late   fabric.Carrier
	from   mem.Pinned
	source fabric.Region
}

func newZombie(t *testing.T, size int) *zombie {
	t.Helper()
	z := &zombie{late: libfabric(t)}
	var err error
	if z.from, err = mem.NewPinned(size); err == nil {
		z.source, err = z.late.Register(z.from, fabric.Source)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range z.from.Bytes() {
		z.from.Bytes()[i] = 0xee
	}
	return z
}

// write returns the error of a write to a room. patiently: the way to its rank may have to be made.
func (z *zombie) write(t *testing.T, address, key uint64, patiently bool) error {
	t.Helper()
	op := &fabric.Op{Peer: 1, From: z.source, Bytes: len(z.from.Bytes()), Address: address, Key: key, Number: 1 << 30}
	for {
		var ev [4]fabric.Event
		z.late.Poll(ev[:]) // of no Op: none is under way
		err := z.late.Write(op)
		if err == nil {
			break
		}
		if !patiently || !errors.Is(err, fabric.ErrBusy) {
			return err
		}
		z.late.Wait(time.Millisecond)
	}
	for {
		var ev [4]fabric.Event
		for _, e := range ev[:z.late.Poll(ev[:])] {
			if e.Op == op {
				return e.Err
			}
		}
		z.late.Wait(time.Millisecond)
	}
}

// kept is memory, and what it held.
type kept struct {
	bytes []byte
	then  []byte
}

// copies are the slots that a rank has of the boxes of another one.
func copies(l *link) (all []kept) {
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	for _, p := range l.replicas {
		for i := range p.slots.each {
			if b := p.slots.slot(i); b != nil {
				all = append(all, kept{b, bytes.Clone(b)})
			}
		}
	}
	return all
}

// A rank that was cut off keeps its rooms, and writes into all of them: after the others have gone on without it,
// into memory that nobody uses any more; and after they have begun again, nowhere.
func TestVerbsZombie(t *testing.T) {
	verbs(t)
	jobs, boxes := 10, 50
	if testing.Short() {
		jobs = 1
	}
	ctx := context.Background()
	spec := rdma.Spec{Bytes: 2 * copied}
	landed, trials, changed := 0, 0, 0
	for range jobs {
		z := newZombie(t, spec.Bytes)
		var reader fabric.Carrier
		open := func() []*Transport {
			return openRanks(t, 2, func(c *config) {
				c.Fabric = libfabric(t)
				if c.Rank == 1 {
					reader = c.Fabric
				}
			})
		}
		fillAll := func(all []*Transport) {
			for box := range boxes {
				out, err := all[0].Publish(ctx, fmt.Sprint(box), spec, []int{1})
				if err != nil {
					t.Fatal(err)
				}
				ins, err := all[1].Subscribe(ctx, fmt.Sprint(box), spec, []int{0})
				if err != nil {
					t.Fatal(err)
				}
				for clock := uint64(1); clock <= 2; clock++ {
					if err := errors.Join(put(all[0], out, spec.Bytes, clock), got(all[1], ins[0], spec.Bytes, clock)); err != nil {
						t.Fatal(err)
					}
					ins[0].(*inbox).replica.granted()
				}
			}
		}
		unchanged := func(all []kept) {
			for _, k := range all {
				if trials++; !bytes.Equal(k.bytes, k.then) {
					changed++
				}
			}
		}

		all := open()
		if err := z.late.Connect(1, reader.Address()); err != nil {
			t.Fatal(err)
		}
		fillAll(all)
		type place struct {
			at           []byte
			address, key uint64
		}
		var rooms []place
		l := all[1].links[0]
		for _, p := range l.replicas {
			r, err := p.slots.region(p.rooms.out.slot, fabric.Target)
			if err != nil {
				t.Fatal(err)
			}
			address, key := r.Remote()
			rooms = append(rooms, place{p.slots.slot(p.rooms.out.slot)[headBytes:], address + headBytes, key})
		}
		before := l.session.Load()
		l.breakUp(nil)
		until(t, "another connection", func() bool { s := l.session.Load(); return s != nil && s != before && s.resumed.Load() })
		now := copies(l)
		for _, r := range rooms {
			if err := z.write(t, r.address, r.key, true); err != nil {
				t.Fatalf("a late write, before the card is closed: %v", err)
			}
			if bytes.Equal(r.at[:spec.Bytes], z.from.Bytes()) {
				landed++
			}
		}
		unchanged(now)
		closeAll(t, all)

		all = open()
		fillAll(all)
		now = copies(all[1].links[0])
		for _, r := range rooms {
			if err := z.write(t, r.address, r.key, false); err == nil {
				t.Error("a late write, into memory of a card that is closed, has completed")
			}
		}
		unchanged(now)
		closeAll(t, all)
		if err := z.late.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d late writes have landed where nobody looks; of %d slots %d have changed", landed, trials, changed)
	if landed != jobs*boxes || changed > 0 || trials < 2*jobs*boxes {
		t.Errorf("of %d late writes %d have landed; %d of %d slots have changed", jobs*boxes, landed, changed, trials)
	}
}
