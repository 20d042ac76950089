package mem

import (
	"net"
	"testing"
	"time"
)

// A process that does not read has a kernel that acknowledges, until there is no
// room left; then that is what is known of it.
func TestFullSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	state := func() (s Socket) {
		cerr := raw.Control(func(fd uintptr) { s, err = TCPState(int(fd)) })
		if err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		return s
	}
	if _, err := c.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	for state().Acked < 100 {
	}
	if state().Full {
		t.Error("100 bytes have filled it")
	}
	for !state().Full {
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = c.Write(make([]byte, 1<<20))
	}
}

// A connection that both ends have closed is not silent, however long it takes
// until somebody reads what is left.
func TestEndedSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	silence := func() (d time.Duration) {
		if err := raw.Control(func(fd uintptr) {
			if s, err := TCPState(int(fd)); err == nil {
				d = s.Silence
			}
		}); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for silence() == 0 { // it is counted
	}
	_ = c.(*net.TCPConn).CloseWrite()
	other.Close()
	for silence() != 0 {
	}
}
