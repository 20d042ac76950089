package handshake

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"malt/internal/fleet"
)

// unhurried is a visitor without a time limit.
type unhurried struct{ *net.TCPConn }

func (unhurried) SetDeadline(time.Time) error { return nil }

// atDoor opens a Door that hands on who has proved the token, and gives strangers all the time they need.
func atDoor(t *testing.T, l *Self, ranks int) (d *Door[unhurried], came chan *Hello) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	came = make(chan *Hello, 1)
	d = OpenDoor([]net.Listener{listener}, ranks,
		func(c *net.TCPConn) (unhurried, error) { return unhurried{c}, nil },
		func(c unhurried, visit Visit) {
			if _, h, err := l.Greet(c, Never, visit, yes); err == nil {
				came <- h
			}
			c.Close()
		})
	t.Cleanup(d.Close)
	return d, came
}

// from dials the Door from a loopback address.
func from(t *testing.T, address string, d *Door[unhurried]) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c, err := dialer.Dial("tcp", d.listeners[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(fleet.Patience))
	return c
}

// heard dials, speaks, and returns when the Door has heard it: who is silent may go before an older one.
func heard(t *testing.T, address string, d *Door[unhurried]) net.Conn {
	t.Helper()
	c := from(t, address, d)
	if _, err := c.Write([]byte("M")); err != nil {
		t.Fatal(err)
	}
	is := func(s *stranger[unhurried]) bool {
		return s.raw.RemoteAddr().String() == c.LocalAddr().String() && s.spoke.Load()
	}
	for end := time.Now().Add(fleet.Patience); ; runtime.Gosched() {
		d.mu.Lock()
		in := slices.ContainsFunc(d.strangers, is)
		d.mu.Unlock()
		if in {
			return c
		}
		if time.Now().After(end) {
			t.Fatalf("the door has not heard %v", c.LocalAddr())
		}
	}
}

// However many strangers come, so many are kept, the oldest of the largest crowd go,
// and who can prove the token comes in.
func TestDoorKeepsFewStrangers(t *testing.T) {
	l, d := ends()
	const ranks, extra = 3, 20
	door, came := atDoor(t, l, ranks)
	alone := heard(t, "127.0.0.2", door) // the oldest of all, and no crowd
	var open []net.Conn
	for range mostStrangers + ranks - 1 + extra {
		open = append(open, heard(t, "127.0.0.1", door))
	}
	for _, c := range open[:extra] {
		if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("read %d bytes, %v; expected a reset", n, err)
		}
	}
	if incarnation, err := d.Dial(from(t, "127.0.0.1", door), 0); err != nil || incarnation != l.hello.Incarnation {
		t.Errorf("a rank among strangers: %v", err)
	}
	if h := <-came; h.From != 1 {
		t.Errorf("%+v came", h)
	}
	door.mu.Lock()
	kept := len(door.strangers)
	door.mu.Unlock()
	if kept != mostStrangers+ranks-1 { // the rank took the place of one
		t.Errorf("%d strangers are kept, expected %d", kept, mostStrangers+ranks-1)
	}
	door.Close()
	open = append(open, alone)
	for _, c := range open {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a stranger is still let in")
		}
	}
	if c, err := net.Dial("tcp", door.listeners[0].Addr().String()); err == nil {
		c.Close()
		t.Error("the door is closed, and somebody listens")
	}
}

// Of those at the door one goes first.
func TestWhoGoesFirst(t *testing.T) {
	now := time.Now()
	type comer struct {
		from string
		ago  time.Duration
		mute bool
	}
	long, short := silence+1, silence-1
	crowd := func(from string, n int) (all []comer) {
		for range n {
			all = append(all, comer{from, short, false})
		}
		return all
	}
	for name, c := range map[string]struct {
		strangers []comer
		homes     string
		want      int
	}{
		"the oldest":                             {[]comer{{"10.0.0.1", long, false}, {"10.0.0.2", short, false}}, "", 0},
		"who is silent":                          {[]comer{{"10.0.0.1", long, false}, {"10.0.0.2", long, true}, {"10.0.0.3", long, true}}, "", 1},
		"who may be about to speak does not":     {[]comer{{"10.0.0.1", short, false}, {"10.0.0.2", short, true}}, "", 0},
		"of the largest crowd":                   {[]comer{{"10.0.0.1", long, true}, {"10.0.0.2", short, false}, {"10.0.0.2", short, false}}, "", 1},
		"of a crowd who is silent":               {[]comer{{"10.0.0.2", long, false}, {"10.0.0.2", long, true}, {"10.0.0.1", long, true}}, "", 1},
		"one network is one address":             {[]comer{{"10.0.0.1", long, true}, {"fd00::1", short, false}, {"fd00::2", short, false}}, "", 1},
		"where ranks are known":                  {append(crowd("10.0.0.1", place), comer{"10.0.0.2", short, false}), "10.0.0.1", place},
		"not for a larger crowd from that place": {append(crowd("10.0.0.1", place+2), comer{"10.0.0.2", short, false}), "10.0.0.1", 0},
	} {
		d := &Door[*net.TCPConn]{crowds: map[netip.Addr]int{}, homes: map[netip.Addr]bool{}}
		if c.homes != "" {
			d.homes[netip.MustParseAddr(c.homes)] = true
		}
		for _, one := range c.strangers {
			s := &stranger[*net.TCPConn]{from: crowdOf(&net.TCPAddr{IP: net.ParseIP(one.from)}), came: now.Add(-one.ago)}
			s.spoke.Store(!one.mute)
			d.strangers = append(d.strangers, s)
			d.crowds[s.from]++
		}
		if got := slices.Index(d.strangers, d.worst(now)); got != c.want {
			t.Errorf("%s: number %d goes, expected %d", name, got, c.want)
		}
	}
}

// A stranger that is slow has its time.
func TestStrangerHasPatience(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limit := make(chan time.Time, 1)
	door := OpenDoor([]net.Listener{listener}, 1,
		func(c *net.TCPConn) (*limited, error) { return &limited{TCPConn: c}, nil },
		func(c *limited, visit Visit) {
			limit <- c.until
			if !visit.Known() || !c.until.IsZero() {
				t.Errorf("the limit stays: %v", c.until)
			}
			c.Close()
		})
	defer door.Close()
	before := time.Now()
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("M")); err != nil {
		t.Fatal(err)
	}
	if d := (<-limit).Sub(before); d < patience || d > patience+time.Since(before) {
		t.Errorf("a stranger has %v, expected %v", d, patience)
	}
}

// calm is a Door at which nobody is sent away.
type calm struct{}

func (calm) Spoke()      {}
func (calm) Known() bool { return true }

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
	if _, _, err := l.Greet(a, Always, calm{}, yes); !errors.Is(err, ErrStranger) {
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
	c, _, err := l.Greet(a, Always, calm{}, yes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, said); err != nil {
		t.Errorf("a rank is read little: %v", err)
	}
	a.Close()
	b.Close()
}
