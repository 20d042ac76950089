package fabrictest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma/fabric"
	"malt/rdma/internal/mem"
)

// Run tests Carriers. open makes one more, of those that can reach one another, with room for 8 peers.
func Run(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, open func(t *testing.T) fabric.Carrier)
	}{
		{"Probe", testProbe},
		{"NumberMeansContent", testContent},
		{"ManyPeers", testPeers},
		{"LargerThanAWrite", testLarge},
		{"WritesAtOnce", testBusy},
		{"NoNumber", testNoNumber},
		{"StaleKey", testStaleKey},
		{"OutsideOfARegion", testOutside},
		{"CloseIsAFence", testFence},
		{"CloseWithWritesInFlight", testCloseInFlight},
		{"ClosedPeer", testClosedPeer},
		{"Refused", testRefused},
		{"CloseEndsWait", testCloseEndsWait},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// end is a Carrier with memory, and what it has been told.
type end struct {
	fabric.Carrier
	t              *testing.T
	from, to       mem.Pinned
	source, target fabric.Region
	done           map[*fabric.Op]error
	numbers        map[uint32]int // how often each has come
	troubles       []error        // of no Op
}

// ends opens n Carriers with so many bytes each to write from and into. They are connected: peer i of
// each is the i-th.
func ends(t *testing.T, n, size int, open func(t *testing.T) fabric.Carrier) []*end {
	list := make([]*end, n)
	for i := range list {
		e := &end{Carrier: open(t), t: t, done: map[*fabric.Op]error{}, numbers: map[uint32]int{}}
		list[i] = e
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		e.from, e.source = e.memory(size, fabric.Source)
		e.to, e.target = e.memory(size, fabric.Target)
	}
	for _, e := range list {
		for i, p := range list {
			e.must(e.Connect(i, p.Address()))
		}
	}
	return list
}

func (e *end) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// memory is kept until the Carrier is closed: a write that is refused may be under way.
func (e *end) memory(n int, a fabric.Access) (mem.Pinned, fabric.Region) {
	e.t.Helper()
	m, err := mem.NewPinned(n)
	e.must(err)
	e.t.Cleanup(func() {
		e.Close()
		if err := m.Unmap(); err != nil {
			e.t.Error(err)
		}
	})
	r, err := e.Register(m, a)
	e.must(err)
	return m, r
}

// poll takes what has come.
func (e *end) poll() bool {
	var ev [8]fabric.Event
	n := e.Poll(ev[:])
	for _, v := range ev[:n] {
		switch {
		case v.Op != nil:
			if _, twice := e.done[v.Op]; twice {
				e.t.Errorf("%+v has completed twice", v.Op)
			}
			e.done[v.Op] = v.Err
		case v.Err != nil:
			e.troubles = append(e.troubles, v.Err)
		default:
			e.numbers[v.Number]++
		}
	}
	return n > 0
}

// until polls all of list until ok.
func until(t *testing.T, list []*end, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fleet.Patience)
	defer cancel()
	for !ok() {
		busy := false
		for _, e := range list {
			busy = e.poll() || busy
		}
		if ctx.Err() != nil {
			for i, e := range list {
				t.Logf("end %d: numbers %v, completed %d, troubles %v", i, e.numbers, len(e.done), e.troubles)
			}
			t.Fatalf("in vain: %s", what)
		}
		if !busy {
			list[0].Wait(time.Millisecond)
		}
	}
}

// write begins to write, as soon as that can be.
func (e *end) write(list []*end, op *fabric.Op) *fabric.Op {
	e.t.Helper()
	until(e.t, list, "a write begins", func() bool {
		err := e.Write(op)
		if err != nil && !errors.Is(err, fabric.ErrBusy) {
			e.t.Fatal(err)
		}
		return err == nil
	})
	return op
}

// op writes the first n bytes to the same place of a peer.
func (e *end) op(peer int, to *end, n int, number uint32) *fabric.Op {
	address, key := to.target.Remote()
	return &fabric.Op{Peer: peer, From: e.source, Bytes: n, Address: address, Key: key, Number: number}
}

func completed(e *end, op *fabric.Op) func() bool {
	return func() bool { _, ok := e.done[op]; return ok }
}

func fill(b []byte, with int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + with)
	}
}

func testProbe(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	ctx, cancel := context.WithTimeout(t.Context(), fleet.Patience)
	defer cancel()
	c := open(t)
	if err := fabric.Probe(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := c.Connect(0, c.Address()); !errors.Is(err, fabric.ErrClosed) {
		t.Errorf("after Probe: %v, want %v", err, fabric.ErrClosed)
	}
}

func testContent(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	list := ends(t, 2, 100_000, open)
	a, b := list[0], list[1]
	number := uint32(0)
	for _, n := range []int{1, 7, 8, 63, 64, 65, 4096, 16_385, 100_000} {
		for range 4 {
			number++
			fill(a.from.Bytes()[:n], int(number))
			op := a.write(list, a.op(1, b, n, number))
			until(t, []*end{b, a}, "a number", func() bool { return b.numbers[number] > 0 })
			if !bytes.Equal(a.from.Bytes()[:n], b.to.Bytes()[:n]) {
				t.Fatalf("%d bytes, number %d: they are not there", n, number)
			}
			until(t, list, "a completion", completed(a, op))
			if err := a.done[op]; err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := uint32(1); i <= number; i++ {
		if b.numbers[i] != 1 {
			t.Errorf("number %d has come %d times", i, b.numbers[i])
		}
	}
}

func testPeers(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	const n = 4
	list := ends(t, n, 4096*n, open)
	for i, e := range list {
		fill(e.from.Bytes(), i)
		for j, p := range list {
			op := e.op(j, p, 4096, uint32(i+1))
			op.Address += uint64(4096 * i)
			e.write(list, op)
		}
	}
	for _, e := range list {
		until(t, list, "all numbers, and all completions", func() bool { return len(e.numbers) == n && len(e.done) == n })
		for i, p := range list {
			if !bytes.Equal(p.from.Bytes()[:4096], e.to.Bytes()[4096*i:][:4096]) {
				t.Errorf("what %d wrote is not there", i)
			}
		}
	}
}

// What is longer than a write goes in pieces, of which the last, with the number, begins when the
// others have completed.
func testLarge(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	const n = 8<<20 + 1
	list := ends(t, 2, n, open)
	a, b := list[0], list[1]
	fill(a.from.Bytes(), 1)
	piece, last := min(a.Caps().MaxWrite, 1<<20), 0
	for at := 0; at < n; at += piece {
		op := a.op(1, b, min(piece, n-at), 0)
		op.At, op.Address = at, op.Address+uint64(at)
		if at+piece >= n {
			until(t, list, "all pieces but the last", func() bool { return len(a.done) == last })
			op.Number = 5
		}
		a.write(list, op)
		last++
	}
	until(t, list, "the number of the last piece", func() bool { return b.numbers[5] == 1 })
	if !bytes.Equal(a.from.Bytes(), b.to.Bytes()) {
		t.Error("not all is there")
	}
}

// Writes that are never polled become ErrBusy, and no event is lost.
func testBusy(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	list := ends(t, 2, 64, open)
	a, b := list[0], list[1]
	first := a.write(list, a.op(1, b, 64, 1)) // makes the way
	until(t, list, "the first", completed(a, first))
	rooms := b.Caps().MaxRooms
	begun := 1
	for begun < rooms {
		err := a.Write(a.op(1, b, 64, uint32(begun+1)))
		if errors.Is(err, fabric.ErrBusy) {
			break
		}
		a.must(err)
		begun++
	}
	if begun == rooms {
		t.Fatalf("%d writes began without a poll, and none was refused", begun)
	}
	until(t, list, "what has begun", func() bool { return len(b.numbers) == begun && len(a.done) == begun })
	for op, err := range a.done {
		if err != nil {
			t.Errorf("number %d: %v", op.Number, err)
		}
	}
}

func testNoNumber(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	list := ends(t, 2, 64, open)
	a, b := list[0], list[1]
	for i, number := range []uint32{0, 0, 1<<32 - 1} {
		op := a.write(list, a.op(1, b, 64, number))
		until(t, list, "a completion", completed(a, op))
		if a.done[op] != nil || i < 2 && len(b.numbers) > 0 {
			t.Errorf("%v, and numbers %v", a.done[op], b.numbers)
		}
	}
	until(t, list, "the number", func() bool { return b.numbers[1<<32-1] == 1 })
}

// refusedWrite writes what must not arrive. A Carrier without a fence may call it complete: there it has been
// refused once good, which comes behind it, has arrived.
func refusedWrite(t *testing.T, list []*end, op, good *fabric.Op) {
	a, b := list[0], list[1]
	fill(a.from.Bytes(), 1)
	clear(b.to.Bytes())
	a.write(list, op)
	until(t, list, "the refused write ends", completed(a, op))
	if a.Caps().Hardware && a.done[op] == nil {
		t.Error("it has completed without an error")
	}
	until(t, list, "a write behind it arrives", func() bool { // the way may have to be made again
		if a.Caps().Hardware {
			return true
		}
		if _, ended := a.done[good]; ended {
			again := *good
			good = &again
		}
		if err := a.Write(good); err == nil {
			until(t, list, "a write behind it ends", completed(a, good))
		}
		return b.numbers[good.Number] > 0
	})
	if b.numbers[op.Number] != 0 {
		t.Error("its number has come")
	}
	for i, v := range b.to.Bytes() {
		if v != 0 {
			t.Fatalf("byte %d has been written", i)
		}
	}
}

func testStaleKey(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	list := ends(t, 2, 4096, open)
	a, b := list[0], list[1]
	op := a.write(list, a.op(1, b, 4096, 1))
	until(t, list, "the first", completed(a, op))
	op = a.op(1, b, 4096, 2)
	b.must(b.target.Close())
	b.must(b.target.Close())
	other, r := b.memory(4096, fabric.Target) // may lie where the one before lay
	address, key := r.Remote()
	if key == op.Key {
		t.Error("a key has come twice")
	}
	refusedWrite(t, list, op, &fabric.Op{Peer: 1, From: a.source, Bytes: 1, Address: address, Key: key, Number: 3})
	if !bytes.Equal(other.Bytes()[1:], make([]byte, 4095)) {
		t.Error("other memory has been written")
	}
}

func testOutside(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	list := ends(t, 2, 8192, open)
	a, b := list[0], list[1]
	op := a.op(1, b, 4096, 1)
	op.Address += 4097
	_, r := b.memory(1, fabric.Target)
	address, key := r.Remote()
	refusedWrite(t, list, op, &fabric.Op{Peer: 1, From: a.source, Bytes: 1, Address: address, Key: key, Number: 2})
}

// A peer that goes on writing while its target is closed: with a fence nothing changes there afterwards.
func testFence(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	for trial := range 4 {
		const n, most = 256 << 10, 24
		list := ends(t, 2, n, open)
		a, b := list[0], list[1]
		var then []byte
		failed := func() bool {
			for _, err := range a.done {
				if err != nil {
					return true
				}
			}
			return false
		}
		begun := 0
		for begun < most && !failed() {
			fill(a.from.Bytes(), most*trial+begun)
			a.write(list, a.op(1, b, n, uint32(begun+1)))
			if begun++; begun == most/2 {
				b.must(b.target.Close())
				then = bytes.Clone(b.to.Bytes())
			}
		}
		until(t, list, "all writes end", func() bool { return len(a.done) == begun })
		if !b.Caps().Hardware {
			return
		}
		if !failed() {
			t.Errorf("trial %d: no write has failed", trial)
		}
		if !bytes.Equal(then, b.to.Bytes()) {
			t.Errorf("trial %d: memory has changed since its region was closed", trial)
		}
	}
}

// Either end closes first, and what has arrived is not polled. Writes that fail then have ended, too.
func testCloseInFlight(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	for first := range 2 {
		const n = 256 << 10
		list := ends(t, 2, n, open)
		a, b := list[0], list[1]
		op := a.write(list, a.op(1, b, n, 1))
		until(t, list, "the first", completed(a, op))
		for i := range 12 {
			a.write(list, a.op(1, b, n, uint32(i+2)))
		}
		list[first].must(list[first].Close())
		list[1-first].must(list[1-first].Close())
		then := bytes.Clone(b.to.Bytes())
		fill(a.from.Bytes(), 1)
		if !bytes.Equal(then, b.to.Bytes()) {
			t.Error("the memory of a closed Carrier has changed")
		}
	}
}

func testClosedPeer(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	list := ends(t, 2, 64, open)
	a, b := list[0], list[1]
	op := a.write(list, a.op(1, b, 64, 1))
	until(t, list, "the first", completed(a, op))
	b.must(b.Close())
	fill(a.from.Bytes(), 1)
	clear(b.to.Bytes())
	refused := a.op(1, b, 64, 2)
	until(t, list[:1], "an answer", func() bool {
		err := a.Write(refused)
		switch {
		case errors.Is(err, fabric.ErrBusy): // a Carrier that is not told of its peer's end looks for it
			return !a.Caps().Hardware
		case err == nil:
			until(t, list[:1], "the write ends", completed(a, refused))
			err = a.done[refused]
		}
		if a.Caps().Hardware && err == nil {
			t.Error("a write to a closed peer has completed without an error")
		}
		return true
	})
	if !bytes.Equal(b.to.Bytes(), make([]byte, 64)) {
		t.Error("it has arrived")
	}
}

func testRefused(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	list := ends(t, 2, 64, open)
	a, b := list[0], list[1]
	for name, change := range map[string]func(op *fabric.Op){
		"a peer that is not connected": func(op *fabric.Op) { op.Peer = 7 },
		"memory of another Carrier":    func(op *fabric.Op) { op.From = b.source },
		"no memory":                    func(op *fabric.Op) { op.From = nil },
		"no bytes":                     func(op *fabric.Op) { op.Bytes = 0 },
		"more than there is":           func(op *fabric.Op) { op.At = 1 },
		"before the beginning":         func(op *fabric.Op) { op.At = -1 },
	} {
		op := a.op(1, b, 64, 1)
		change(op)
		if err := a.Write(op); err == nil || errors.Is(err, fabric.ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.Connect(2, []byte("short")); err == nil {
		t.Error("a short address was taken")
	}
	b.must(b.Close())
	b.must(b.Close())
	if err := b.Write(b.op(0, a, 64, 1)); !errors.Is(err, fabric.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	if _, err := b.Register(b.from, fabric.Source); !errors.Is(err, fabric.ErrClosed) {
		t.Errorf("Register after Close: %v", err)
	}
	if n := b.Poll(make([]fabric.Event, 1)); n != 0 {
		t.Errorf("Poll after Close: %d", n)
	}
}

func testCloseEndsWait(t *testing.T, open func(t *testing.T) fabric.Carrier) {
	c := open(t)
	waits, ended := make(chan struct{}), make(chan struct{})
	go func() {
		close(waits)
		c.Wait(fleet.Patience)
		close(ended)
	}()
	<-waits
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(fleet.Patience / 2):
		t.Error("Close has not ended Wait")
	}
}
