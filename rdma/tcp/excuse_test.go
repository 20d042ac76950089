package tcp

import (
	"bytes"
	"net"
	"runtime"
	"testing"

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
// at that moment. The reader gets what was sent as it was, and without payload
// what was not. And G4: in newest mode nothing is waited for.
func TestG3G4StalledLink(t *testing.T) {
	const size = 16 << 20 // more than sockets hold
	for _, s := range []rdma.Spec{{Bytes: size, Depth: 1}, {Bytes: size}} {
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
			for sent, _ := l.wireBytes(); clock == 1 && sent < 2*chunk; sent, _ = l.wireBytes() {
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
		if len(got) != 2 || got[0] != 1 || got[1] != 4 {
			t.Errorf("%+v: got clocks %v, expected 1 and 4", s, got)
		}
		closeAll(t, all)
	}
}
