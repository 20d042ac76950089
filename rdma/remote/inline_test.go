package remote

import (
	"errors"
	"net"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/tcp"
)

// glancing is a link that has a connection, whose other end is there, and no
// goroutine.
func glancing(t *testing.T) (*link, *input, net.Conn) {
	t.Helper()
	at := listenAt(t, "127.0.0.1:0")
	defer at.Close()
	c, err := tcp.New(tcp.Config{Peers: [][]string{{at.Addr().String()}}}).Dial(t.Context(), 0, fleet.Patience, fleet.Patience)
	if err != nil {
		t.Fatal(err)
	}
	there, err := at.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); there.Close() })
	l := newLink(nil, 1)
	l.state = broken
	return l, l.newSession(newConn(c)).in, there
}

// eventually tries until something has come.
func eventually(t *testing.T, l *link) {
	t.Helper()
	for end := time.Now().Add(fleet.Patience); !l.inlineProgress(); {
		if time.Now().After(end) {
			t.Fatal("nothing has come")
		}
	}
}

// TestInlineProgress: who looks lands whole frames, and leaves the rest to the link's
// goroutine, which it wakes for what ends the connection.
func TestInlineProgress(t *testing.T) {
	l, in, there := glancing(t)
	if l.inlineProgress() {
		t.Error("something has come, though nothing was sent")
	}
	frame := appendFrame(nil, resume, 0, 0, 0)
	_, _ = there.Write(append(frame, frame[:7]...))
	eventually(t, l)
	if !l.session.Load().resumed.Load() || l.session.Load().landed.Load() != 1 || in.to-in.from != 7 {
		t.Errorf("resumed %v, %d frames, %d bytes left; expected true, 1, 7", l.session.Load().resumed.Load(), l.session.Load().landed.Load(), in.to-in.from)
	}
	_, _ = there.Write(frame[7:])
	for range 2 {
		if l.inlineProgress() {
			t.Error("what begins in the middle of a frame is for the goroutine")
		}
	}
	in.turn.Lock()
	if err := l.session.Load().landNext(); err != nil || in.to != in.from {
		t.Errorf("the goroutine goes on: %v, %d bytes left", err, in.to-in.from)
	}
	if l.inlineProgress() {
		t.Error("somebody else has the turn")
	}
	in.turn.Unlock()
	_, _ = there.Write(appendFrame(nil, left, 0, 0, 0))
	eventually(t, l)
	if !errors.Is(in.failed, errPeerLeft) {
		t.Errorf("%v, expected that the peer has left", in.failed)
	}
	if err := in.c.Await(func() bool { return false }); err == nil {
		t.Error("the goroutine was not woken")
	}
	if l.inlineProgress() {
		t.Error("behind the end nothing lands")
	}
}

// TestInlineProgressAtTheEnd: a connection that breaks, or is closed at this end, lands
// nothing more.
func TestInlineProgressAtTheEnd(t *testing.T) {
	l, in, there := glancing(t)
	there.Close()
	eventually(t, l)
	if !ended(in.failed) {
		t.Errorf("%v, expected that the connection has ended", in.failed)
	}
	l, in, there = glancing(t)
	_, _ = there.Write(appendFrame(nil, resume, 0, 0, 0))
	in.c.Close()
	if l.inlineProgress() || l.session.Load().resumed.Load() {
		t.Error("something has landed from a connection that is closed")
	}
}

// TestInlineProgressBesideTheGoroutine: updates land once and in order, whoever lands them.
func TestInlineProgressBesideTheGoroutine(t *testing.T) {
	all := openRanks(t, 2, nil)
	out, in := pair(t, all, rdma.Spec{Bytes: 64, Mode: rdma.Queue(4)})
	const updates = 3000
	go func() {
		for clock := uint64(1); clock <= updates; {
			b, err := out.Begin()
			if err != nil {
				t.Error(err)
				return
			}
			if b == nil {
				continue
			}
			for i := range b {
				b[i] = byte(clock)
			}
			if err := out.Commit(len(b), rdma.Stamp{Clock: clock}, nil); err != nil {
				t.Error(err)
				return
			}
			clock++
		}
	}()
	end := time.Now().Add(fleet.Patience)
	for clock := uint64(1); clock <= updates; {
		u, ok, err := in.Next()
		switch {
		case err != nil:
			t.Fatal(err)
		case ok && (u.Clock != clock || u.Data[0] != byte(clock) || u.Data[63] != byte(clock)):
			t.Fatalf("update %d of clock %d, expected %d", u.Data[0], u.Clock, byte(clock))
		case ok:
			in.Release(u.Seq)
			clock++
		case time.Now().After(end):
			t.Fatalf("update %d has not come", clock)
		}
	}
	closeAll(t, all)
}
