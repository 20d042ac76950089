package handshake

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// However many strangers come and say nothing, so many are kept, the oldest go,
// and who can prove the token comes in.
func TestDoorKeepsFewStrangers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, d := ends()
	came := make(chan *Hello, 1)
	door := OpenDoor([]net.Listener{listener},
		func(c *net.TCPConn) (*net.TCPConn, error) { return c, nil },
		func(c *net.TCPConn, known func() bool) {
			_, h, err := l.Greet(c, nil, func(*Hello) Verdict {
				if !known() {
					t.Error("a rank was sent away")
				}
				return Accepted
			})
			if err == nil {
				came <- h
			}
			c.Close()
		})
	var open []net.Conn
	dial := func() net.Conn {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		return c
	}
	const extra = 20
	for range mostStrangers + extra {
		dial()
	}
	for _, c := range open[:extra] { // the oldest
		if n, err := c.Read(make([]byte, 1)); n > 0 || err != io.EOF {
			t.Fatalf("read %d bytes, %v; expected the end", n, err)
		}
	}
	if incarnation, err := d.Dial(dial(), 0); err != nil || incarnation != l.hello.Incarnation {
		t.Errorf("a rank among strangers: %v", err)
	}
	if h := <-came; h.From != 1 {
		t.Errorf("%+v came", h)
	}
	door.mu.Lock()
	kept := len(door.strangers)
	door.mu.Unlock()
	if kept != mostStrangers-1 { // the rank took the place of one
		t.Errorf("%d strangers are kept, expected %d", kept, mostStrangers-1)
	}
	door.Close()
	for _, c := range open {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a stranger is still let in")
		}
		c.Close()
	}
	if c, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		c.Close()
		t.Error("the door is closed, and somebody listens")
	}
}

// A stranger that is slow has its time.
func TestStrangerHasPatience(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limit := make(chan time.Duration, 1)
	door := OpenDoor([]net.Listener{listener},
		func(c *net.TCPConn) (*limited, error) { return &limited{TCPConn: c}, nil },
		func(c *limited, known func() bool) {
			limit <- time.Until(c.until)
			if !known() || !c.until.IsZero() {
				t.Errorf("the limit stays: %v", c.until)
			}
			c.Close()
		})
	defer door.Close()
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if d := <-limit; d <= 0 || d > patience {
		t.Errorf("a stranger has %v, expected %v", d, patience)
	}
}

type limited struct {
	*net.TCPConn
	until time.Time
}

func (l *limited) SetDeadline(t time.Time) error {
	l.until = t
	return l.TCPConn.SetDeadline(t)
}

// However much a stranger says in TLS, and announces to say, little of it is
// read; from who is known everything is.
func TestStrangerIsReadLittle(t *testing.T) {
	cfg, err := TLS()
	if err != nil {
		t.Fatal(err)
	}
	l, d := ends()
	a, b := net.Pipe()
	go func() {
		record := append([]byte{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff}, make([]byte, 0x4000-4)...) // a hello of 64 KB
		for {
			if _, err := b.Write(record); err != nil {
				return
			}
		}
	}()
	if _, _, err := l.Greet(a, cfg, yes); !errors.Is(err, ErrStranger) {
		t.Errorf("%v", err)
	}
	a.Close()

	a, b = net.Pipe()
	said := make([]byte, 1<<20)
	go func() {
		e := tls.Client(b, cfg)
		if _, err := d.Dial(e, 0); err != nil {
			t.Error(err)
		}
		_, _ = e.Write(said)
	}()
	c, _, err := l.Greet(a, cfg, yes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, said); err != nil {
		t.Errorf("a rank is read little: %v", err)
	}
	a.Close()
	b.Close()
}
