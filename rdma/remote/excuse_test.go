package remote

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"

	"malt/internal/fleet"
	"malt/rdma"
)

// gate is a proxy that lets nothing through while it is shut.
func gate(t *testing.T, to string) (address string, shut, open func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pass := make(chan struct{}, 1) // has an element while the gate is open
	pass <- struct{}{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				return
			}
			pipe := func(to, from net.Conn) {
				b := make([]byte, 4<<10)
				for {
					n, err := from.Read(b)
					<-pass
					pass <- struct{}{}
					if _, failed := to.Write(b[:n]); failed != nil || err != nil {
						_ = to.(*net.TCPConn).CloseWrite()
						return
					}
				}
			}
			go pipe(c, d)
			go pipe(d, c)
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), func() { <-pass }, func() { pass <- struct{}{} }
}

// A sender in queue mode that excuses a reader overwrites what is being sent to it
// at that moment: the reader gets it without payload, as what is lost before it was
// begun. And G4: in newest mode nothing is waited for.
func TestG3G4StalledLink(t *testing.T) {
	const size = 16 << 20 // more than sockets hold
	for _, s := range []rdma.Spec{{Bytes: size, Mode: rdma.Queue(1)}, {Bytes: size}} {
		configs := configure(t, 2)
		address, shut, open := gate(t, configs[0].Peers[0][0])
		configs[1].Peers = [][]string{{address}, configs[1].Peers[1]}
		all := openConfigs(t, configs)
		out, in := pair(t, all, s)
		shut()
		for clock := uint64(1); clock <= 4; clock++ {
			b, err := out.Begin()
			if b == nil && err == nil {
				out.Excuse(1)
				b, err = out.Begin()
			}
			if err != nil || b == nil {
				t.Fatalf("clock %d: %d bytes, %v", clock, len(b), err)
			}
			for i := range b {
				b[i] = byte(clock)
			}
			if err := out.Commit(size, rdma.Stamp{Clock: clock}, nil); err != nil {
				t.Fatal(err)
			}
			l := all[0].links[1]
			for sent, _ := l.wireBytes(); clock == 1 && sent < chunk; sent, _ = l.wireBytes() {
				runtime.Gosched() // until it is on its way
			}
		}
		open()
		var got []uint64
		for last := uint64(0); last < 4; {
			u, ok, err := in.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				runtime.Gosched()
				continue
			}
			last = u.Seq
			if u.Data != nil {
				got = append(got, u.Clock)
				if !bytes.Equal(u.Data, bytes.Repeat([]byte{byte(u.Clock)}, size)) {
					t.Errorf("%+v: clock %d is torn", s, u.Clock)
				}
			}
			in.Release(u.Seq)
		}
		want := []uint64{1, 4}
		if s.Mode.Depth() > 0 {
			want = want[1:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: got clocks %v, expected %v", s, got, want)
		}
		closeAll(t, all)
	}
}

// A reader that was away skips what is lost and no more: also what its sender has
// published behind it, and what it had no room for, is there when it looks. Who
// excuses it after an older look at where it is does nothing.
func TestReturn(t *testing.T) {
	all := openRanks(t, 2, nil)
	landed := settled{all[0], all, t}
	out, in := pair(t, all, rdma.Spec{Bytes: 8, Mode: rdma.Queue(1)})
	send := func(clock uint64) {
		t.Helper()
		if b, err := out.Begin(); b == nil || err != nil {
			t.Fatal(b, err)
		}
		if err := out.Commit(8, rdma.Stamp{Clock: clock}, nil); err != nil {
			t.Fatal(err)
		}
	}
	get := func(clock uint64) {
		t.Helper()
		if u, ok, err := in.Next(); !ok || err != nil || u.Clock != clock || u.Data == nil {
			t.Fatalf("%+v, %v, %v; expected clock %d", u, ok, err, clock)
		}
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
		defer cancel()
		if err := all[1].Wait(ctx, ok); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	marks := wordsOf(t, all, 1)

	send(1)
	landed.Settle()
	marks[1].Set(0, 1) // it is back, which comes behind update 1
	landed.Settle()
	in.Return()
	await("the first return", in.Returned)
	get(1)

	for clock := uint64(2); clock <= 5; clock++ {
		out.Excuse(1)
		if clock == 2 {
			out.Excuse(1) // the first is void
		}
		send(clock)
	}
	landed.Settle() // there is no room for what was sent
	in.Return()
	await("the second return", in.Returned)
	get(5)
	out.Excuse(1)
	if b, err := out.Begin(); b != nil || err != nil {
		t.Errorf("a reader that is back was excused: %d bytes, %v", len(b), err)
	}
	in.Release(5)
	landed.Settle()
	send(6)
	landed.Settle()
	get(6)
	closeAll(t, all)
}

// What was Set counts as heard when the other has it.
func TestHeard(t *testing.T) {
	configs := configure(t, 2)
	address, shut, open := gate(t, configs[0].Peers[0][0])
	configs[1].Peers = [][]string{{address}, configs[1].Peers[1]}
	all := openConfigs(t, configs)
	marks := wordsOf(t, all, 2)
	shut()
	marks[0].Set(1, 7)
	if marks[0].Heard(1) {
		t.Error("nothing can have come through")
	}
	open()
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	if err := all[0].Wait(ctx, func() bool { return marks[0].Heard(1) }); err != nil {
		t.Fatal(err)
	}
	if v, err := marks[1].Get(0, 1); v != 7 || err != nil {
		t.Errorf("it has heard, and reads %d, %v", v, err)
	}
	marks[0].Set(0, 1)
	if err := all[1].Close(); err != nil {
		t.Fatal(err)
	}
	if err := all[0].Wait(ctx, func() bool { return marks[0].Heard(1) }); err != nil {
		t.Fatalf("of a rank that has left: %v", err)
	}
	closeAll(t, all)
}

// wordsOf makes words of all ranks.
func wordsOf(t *testing.T, all []*Transport, n int) []rdma.Words {
	t.Helper()
	ws, errs := make([]rdma.Words, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for r, tr := range all {
		wg.Go(func() { ws[r], errs[r] = tr.Words(t.Context(), "words", n) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return ws
}
