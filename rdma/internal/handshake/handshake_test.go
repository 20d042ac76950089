package handshake

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"malt/rdma"
)

var test = Protocol{Magic: 0x1234, Version: 3, Name: "MALT test/test"}

// ends are two ranks of one job, as far as handshakes go: 1 dials 0.
func ends() (listener, dialler *Self) {
	h := Hello{Job: [32]byte{7}, Size: 2, Generation: 3}
	listener = New(test, []byte("secret"), h)
	h.From = 1
	return listener, New(test, []byte("secret"), h)
}

func yes(*Hello) Verdict { return Accepted }

// shake runs a handshake between two ends.
func shake(listener, dialler *Self, permit func(*Hello) Verdict) (h *Hello, incarnation uint64, accepting, dialling error) {
	a, b := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h, accepting = listener.Accept(a, permit)
		a.Close()
	}()
	incarnation, dialling = dialler.Dial(b, 0)
	b.Close()
	<-done
	return h, incarnation, accepting, dialling
}

func TestHandshake(t *testing.T) {
	l, d := ends()
	h, incarnation, a, b := shake(l, d, yes)
	if a != nil || b != nil || incarnation != l.hello.Incarnation {
		t.Fatalf("%#x, %v, %v", incarnation, a, b)
	}
	said := *h
	said.Nonce = [32]byte{}
	if said != d.hello || said.From != 1 || said.Version != 3 || said.Incarnation == 0 {
		t.Errorf("heard %+v; said was %+v", said, d.hello)
	}
	for v := OtherVersion; v <= CountedDead; v++ {
		if v == WrongToken {
			continue
		}
		h, _, a, b := shake(l, d, func(*Hello) Verdict { return v })
		var refused *Refusal
		if !errors.As(a, &refused) || refused.Verdict != v || h == nil || h.From != 1 {
			t.Errorf("%v: the listener says %v of %+v", v, a, h)
		}
		if !errors.As(b, &refused) || refused.Verdict != v || !errors.Is(b, rdma.ErrConfig) || !strings.Contains(b.Error(), v.String()) {
			t.Errorf("%v: the dialler says %v", v, b)
		}
	}
}

// Without the token nobody is asked for, whatever else differs.
func TestWrongToken(t *testing.T) {
	l, d := ends()
	h := d.hello
	for what, stranger := range map[string]*Self{
		"token":    New(test, []byte("Secret"), h),
		"protocol": New(Protocol{test.Magic, test.Version, "MALT other"}, []byte("secret"), h),
	} {
		h, _, a, b := shake(l, stranger, func(*Hello) Verdict { t.Errorf("%s: a stranger was asked for", what); return Accepted })
		var ours, theirs *Refusal
		if !errors.As(a, &ours) || !errors.As(b, &theirs) || ours.Verdict != WrongToken || theirs.Verdict != WrongToken || h == nil {
			t.Errorf("%s: %v, %v", what, a, b)
		}
	}
}

// A listener that has not the token learns nothing that it could use, and is not
// taken for a rank.
func TestImpostorListens(t *testing.T) {
	l, d := ends()
	l.key = []byte("another")
	a, b := net.Pipe()
	go func() {
		defer a.Close()
		_, _ = io.ReadFull(a, make([]byte, HelloBytes))
		_, _ = a.Write(test.encode(&challenge{Version: test.Version}))
		_, _ = io.ReadFull(a, make([]byte, ProofBytes))
		_, _ = a.Write(make([]byte, WelcomeBytes)) // accepted
	}()
	if _, err := d.Dial(b, 0); !errors.Is(err, ErrStranger) {
		t.Errorf("%v", err)
	}
}

// recorder keeps what is written through it.
type recorder struct {
	io.ReadWriter
	said bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.said.Write(b)
	return r.ReadWriter.Write(b)
}

// What a rank has said once proves nothing the next time.
func TestReplayedHandshake(t *testing.T) {
	l, d := ends()
	a, b := net.Pipe()
	tape := &recorder{ReadWriter: b}
	go func() { _, _ = l.Accept(a, yes) }()
	if _, err := d.Dial(tape, 0); err != nil {
		t.Fatal(err)
	}
	if n := tape.said.Len(); n != HelloBytes+ProofBytes {
		t.Fatalf("%d bytes were said", n)
	}
	for _, secret := range [][]byte{l.key, []byte("secret")} {
		if bytes.Contains(tape.said.Bytes(), secret) {
			t.Error("the token travels")
		}
	}
	a, b = net.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := l.Accept(a, yes)
		done <- err
	}()
	go func() { _, _ = io.Copy(io.Discard, b) }()
	_, _ = b.Write(tape.said.Bytes())
	var refused *Refusal
	if err := <-done; !errors.As(err, &refused) || refused.Verdict != WrongToken {
		t.Errorf("a replay: %v", err)
	}
}

// Every byte of every message is covered: whoever changes one on the way gets
// nobody in.
func TestHandshakeCoversEveryByte(t *testing.T) {
	l, d := ends()
	for _, message := range []int{HelloBytes, ChallengeBytes, ProofBytes, WelcomeBytes} {
		for at := range message {
			a, b := net.Pipe()
			c, e := net.Pipe()
			go func() { // between the two, changes one byte of that message
				hello, challenge, proof, welcome := make([]byte, HelloBytes), make([]byte, ChallengeBytes), make([]byte, ProofBytes), make([]byte, WelcomeBytes)
				for _, m := range []struct {
					from, to net.Conn
					b        []byte
				}{{e, a, hello}, {a, e, challenge}, {e, a, proof}, {a, e, welcome}} {
					if _, err := io.ReadFull(m.from, m.b); err != nil {
						break
					}
					if len(m.b) == message {
						m.b[at] ^= 4
					}
					if _, err := m.to.Write(m.b); err != nil {
						break
					}
				}
				a.Close()
				e.Close()
			}()
			done := make(chan error, 1)
			go func() {
				_, err := l.Accept(b, yes)
				b.Close()
				done <- err
			}()
			_, err := d.Dial(c, 0)
			c.Close()
			if accepting := <-done; err == nil || accepting == nil && message != WelcomeBytes {
				t.Fatalf("byte %d of a message of %d was changed: %v, %v", at, message, accepting, err)
			}
		}
	}
}

func TestOtherVersion(t *testing.T) {
	l, _ := ends()
	a, b := net.Pipe()
	go func() { _, _ = l.Accept(a, yes) }()
	h := Hello{Version: test.Version + 1}
	_, _ = b.Write(test.encode(&h))
	var said [ChallengeBytes]byte
	if _, err := io.ReadFull(b, said[:]); err != nil {
		t.Fatal(err)
	}
	var c challenge
	err := test.decode(said[:], &c)
	if c.Verdict != OtherVersion || c.Version != test.Version || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
	// Both versions are named, at both ends.
	newer := test
	newer.Version++
	_, _, ours, theirs := shake(l, New(newer, []byte("secret"), Hello{From: 1}), yes)
	if ours == nil || theirs == nil || !strings.Contains(ours.Error(), "3 here, 4 there") || !strings.Contains(theirs.Error(), "4 here, 3 there") {
		t.Errorf("%v, %v", ours, theirs)
	}
}

// Where one end encrypts and the other does not, both say so, and who has not the
// token is told nothing.
func TestOtherEncryption(t *testing.T) {
	cfg, err := TLS()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name             string
		listens          Encryption
		encrypts         bool // who dials
		listener, dialer string
	}{
		{"the listener encrypts", Always, false, "this rank does, and the other does not", "this rank does not, and the other does"},
		{"the dialler encrypts", Never, true, "this rank does not, and the other does", "this rank does, and the other does not"},
		{"the listener is content with both", ByAddress, true, "", ""},
		{"the listener is content with none", ByAddress, false, "", ""},
		{"both", Always, true, "", ""},
		{"none", Never, false, "", ""},
	} {
		l, d := ends()
		stranger := New(test, []byte("Secret"), d.hello)
		for _, who := range []*Self{d, stranger} {
			a, b := net.Pipe()
			rw := b
			if c.encrypts {
				rw = tls.Client(b, cfg)
			}
			done := make(chan error, 1)
			go func() {
				_, h, err := l.Greet(a, c.listens, calm{}, yes)
				if h == nil || h.From != 1 {
					t.Errorf("%s: %+v came", c.name, h)
				}
				done <- err
				a.Close()
			}()
			_, theirs := who.Dial(rw, 0)
			ours := <-done
			b.Close()
			var refused *Refusal
			switch {
			case who == stranger:
				for _, err := range []error{ours, theirs} {
					if !errors.As(err, &refused) || refused.Verdict != WrongToken {
						t.Errorf("%s, to a stranger: %v", c.name, err)
					}
				}
			case c.listener == "":
				if ours != nil || theirs != nil {
					t.Errorf("%s: %v, %v", c.name, ours, theirs)
				}
			default:
				if !errors.As(ours, &refused) || refused.Verdict != OtherEncryption || !strings.HasSuffix(ours.Error(), c.listener) {
					t.Errorf("%s: the listener says %v", c.name, ours)
				}
				if !errors.As(theirs, &refused) || refused.Verdict != OtherEncryption || !strings.HasSuffix(theirs.Error(), c.dialer) {
					t.Errorf("%s: the dialler says %v", c.name, theirs)
				}
			}
		}
	}
}

// Encrypted by default is what goes from or to an address that is not private.
func TestEncryptionByAddress(t *testing.T) {
	for there, public := range map[string]bool{
		"10.1.2.3": false, "172.16.0.1": false, "172.32.0.1": true, "192.168.1.1": false, "127.0.0.1": false, "169.254.1.1": false,
		"100.64.0.1": true, "192.0.2.1": true, "8.8.8.8": true,
		"::1": false, "fd00::1": false, "fe80::1": false, "2001:db8::1": true, "::ffff:10.0.0.1": false, "::ffff:8.8.8.8": true,
	} {
		at := []net.Addr{&net.TCPAddr{IP: net.ParseIP(there)}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}}
		for _, c := range []between{{here: at[0], there: at[1]}, {here: at[1], there: at[0]}} {
			if ByAddress.Wants(c) != public || !Always.Wants(c) || Never.Wants(c) {
				t.Errorf("between %v and %v: %v; expected %v", c.here, c.there, ByAddress.Wants(c), public)
			}
		}
		// Where it must, nobody is let in who does not.
		for _, encrypts := range []bool{false, true} {
			l, d := ends()
			a, b := net.Pipe()
			var rw net.Conn = b
			if encrypts {
				cfg, err := TLS()
				if err != nil {
					t.Fatal(err)
				}
				rw = tls.Client(b, cfg)
			}
			done := make(chan error, 1)
			go func() { _, _, err := l.Greet(between{a, at[0], at[1]}, ByAddress, calm{}, yes); done <- err }()
			_, theirs := d.Dial(rw, 0)
			if ours := <-done; (ours == nil) != (encrypts || !public) || (theirs == nil) != (encrypts || !public) {
				t.Errorf("from %s, encrypted %v: %v, %v", there, encrypts, ours, theirs)
			}
			a.Close()
			b.Close()
		}
	}
}

// between is a connection with these ends.
type between struct {
	net.Conn
	here, there net.Addr
}

func (b between) LocalAddr() net.Addr  { return b.here }
func (b between) RemoteAddr() net.Addr { return b.there }

// talker is a connection at whose other end somebody has said all beforehand.
type talker struct {
	net.Conn
	said io.Reader
}

func (t talker) Read(b []byte) (int, error)  { return t.said.Read(b) }
func (t talker) Write(b []byte) (int, error) { return len(b), nil }

// Who answers there need not speak TLS.
func TestNoTLSThere(t *testing.T) {
	cfg, err := TLS()
	if err != nil {
		t.Fatal(err)
	}
	_, d := ends()
	there := talker{said: strings.NewReader("220 smtp.example.org ready\r\n")}
	if _, err := d.Dial(tls.Client(there, cfg), 0); !errors.Is(err, ErrStranger) || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("%v", err)
	}
}

// FuzzHandshake has a stranger say whatever it likes, to either end.
func FuzzHandshake(f *testing.F) {
	_, d := ends()
	f.Add(append(test.encode(&d.hello), make([]byte, ProofBytes)...), true)
	f.Add(append(test.encode(&challenge{Version: test.Version, Incarnation: 1}), make([]byte, WelcomeBytes)...), false)
	f.Fuzz(func(t *testing.T, said []byte, listens bool) {
		l, d := ends()
		stranger := talker{said: bytes.NewReader(said)}
		letIn := func(*Hello) Verdict { t.Error("let in"); return Accepted }
		var err error
		if listens {
			for _, c := range []Encryption{Never, Always} {
				stranger := talker{said: bytes.NewReader(said)}
				if _, _, again := l.Greet(stranger, c, calm{}, letIn); again == nil {
					t.Error("a stranger was taken for a rank")
				}
			}
			_, err = l.Accept(stranger, letIn)
		} else {
			_, err = d.Dial(stranger, 0)
		}
		if err == nil {
			t.Error("a stranger was taken for a rank")
		}
	})
}

// Who stands between two ends of TLS connections, with a certificate of its own,
// cannot pass the proofs on.
func TestManInTheMiddle(t *testing.T) {
	cfg, err := TLS()
	if err != nil {
		t.Fatal(err)
	}
	other, err := TLS()
	if err != nil {
		t.Fatal(err)
	}
	l, d := ends()
	a, b := net.Pipe()
	c, e := net.Pipe()
	go func() { _, _ = l.Accept(tls.Server(a, cfg), yes) }()
	go func() {
		victim, attacked := tls.Server(e, other), tls.Client(b, cfg)
		go func() { _, _ = io.Copy(attacked, victim) }()
		_, _ = io.Copy(victim, attacked)
	}()
	var refused *Refusal
	if _, err := d.Dial(tls.Client(c, cfg), 0); !errors.As(err, &refused) || refused.Verdict != WrongToken {
		t.Errorf("through a stranger's hands: %v", err)
	}
	for _, x := range []net.Conn{a, b, c, e} {
		x.Close()
	}
}
