package tcp

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"malt/rdma"
)

// selves are two ranks of one job, as far as handshakes go: 1 dials 0.
func selves() (listener, dialler self) {
	c := Config{Rank: 0, Size: 2, Job: "job", Token: []byte("secret"), Generation: 3}
	listener = newSelf(&c)
	c.Rank = 1
	return listener, newSelf(&c)
}

func yes(int, uint64) verdict { return accepted }

// shake runs a handshake between two ends.
func shake(listener, dialler *self, permit func(int, uint64) verdict) (from int, incarnation uint64, accepting, dialling error) {
	a, b := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		from, accepting = listener.accept(a, permit)
		a.Close()
	}()
	incarnation, dialling = dialler.dial(b, 0)
	b.Close()
	<-done
	return from, incarnation, accepting, dialling
}

func TestHandshake(t *testing.T) {
	l, d := selves()
	var told uint64
	from, incarnation, a, b := shake(&l, &d, func(_ int, i uint64) verdict { told = i; return accepted })
	if a != nil || b != nil || from != 1 || incarnation != l.incarnation || told != d.incarnation {
		t.Errorf("rank %d, %#x, %v, %v", from, incarnation, a, b)
	}
	for want, change := range map[verdict]func(l, d *self){
		wrongToken:      func(l, d *self) { d.key = bytes.Clone(d.key); d.key[0]++ },
		otherJob:        func(l, d *self) { d.job[0]++ },
		otherSize:       func(l, d *self) { d.size++ },
		otherGeneration: func(l, d *self) { d.generation++ },
		noSuchRank:      func(l, d *self) { d.rank = 0 },
	} {
		l, d := selves()
		change(&l, &d)
		_, _, a, b := shake(&l, &d, func(int, uint64) verdict { t.Errorf("%v: a stranger was let in", want); return accepted })
		var refused *refusal
		if !errors.As(a, &refused) || refused.verdict != want {
			t.Errorf("%v: the listener says %v", want, a)
		}
		var config *rdma.ConfigError
		if !errors.As(b, &refused) || refused.verdict != want || !errors.As(b, &config) {
			t.Errorf("%v: the dialler says %v", want, b)
		}
	}
	_, _, a, b = shake(&l, &d, func(int, uint64) verdict { return otherProcess })
	if a == nil || b == nil || !strings.Contains(b.Error(), "another process") {
		t.Errorf("refused for another process: %v, %v", a, b)
	}
}

// A listener that has not the token learns nothing that it could use, and is not
// taken for a rank.
func TestImpostorListens(t *testing.T) {
	l, d := selves()
	l.key = []byte("another")
	a, b := net.Pipe()
	go func() {
		defer a.Close()
		_, _ = io.ReadFull(a, make([]byte, helloBytes))
		_, _ = a.Write(encodeChallenge(accepted, l.incarnation, [32]byte{}))
		_, _ = io.ReadFull(a, make([]byte, proofBytes))
		_, _ = a.Write(make([]byte, welcomeBytes)) // accepted
	}()
	if _, err := d.dial(b, 0); !errors.Is(err, errStranger) {
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
	l, d := selves()
	a, b := net.Pipe()
	tape := &recorder{ReadWriter: b}
	go func() { _, _ = l.accept(a, yes) }()
	if _, err := d.dial(tape, 0); err != nil {
		t.Fatal(err)
	}
	if n := tape.said.Len(); n != helloBytes+proofBytes {
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
		_, err := l.accept(a, yes)
		done <- err
	}()
	go func() { _, _ = io.Copy(io.Discard, b) }()
	_, _ = b.Write(tape.said.Bytes())
	var refused *refusal
	if err := <-done; !errors.As(err, &refused) || refused.verdict != wrongToken {
		t.Errorf("a replay: %v", err)
	}
}

// Every byte of every message is covered: whoever changes one on the way gets
// nobody in.
func TestHandshakeCoversEveryByte(t *testing.T) {
	l, d := selves()
	for _, message := range []int{helloBytes, challengeBytes, proofBytes, welcomeBytes} {
		for at := range message {
			a, b := net.Pipe()
			c, e := net.Pipe()
			go func() { // between the two, changes one byte of that message
				hello, challenge, proof, welcome := make([]byte, helloBytes), make([]byte, challengeBytes), make([]byte, proofBytes), make([]byte, welcomeBytes)
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
				_, err := l.accept(b, yes)
				b.Close()
				done <- err
			}()
			_, err := d.dial(c, 0)
			c.Close()
			if accepting := <-done; err == nil || accepting == nil && message != welcomeBytes {
				t.Fatalf("byte %d of a message of %d was changed: %v, %v", at, message, accepting, err)
			}
		}
	}
}

func TestOtherVersion(t *testing.T) {
	l, _ := selves()
	a, b := net.Pipe()
	go func() { _, _ = l.accept(a, yes) }()
	h := hello{version: version + 1}
	_, _ = b.Write(h.encode())
	var challenge [challengeBytes]byte
	if _, err := io.ReadFull(b, challenge[:]); err != nil {
		t.Fatal(err)
	}
	v, theirs, _, err := decodeChallenge(challenge[:])
	if v != otherVersion || theirs != version || err != nil {
		t.Errorf("verdict %v, version %d, %v", v, theirs, err)
	}
}

// FuzzHandshake has a stranger say whatever it likes, to either end.
func FuzzHandshake(f *testing.F) {
	_, d := selves()
	h := hello{version: version, job: d.job, from: 1, to: 0, size: 2, generation: 3, incarnation: 1}
	f.Add(append(h.encode(), make([]byte, proofBytes)...), true)
	f.Add(append(encodeChallenge(accepted, 1, [32]byte{}), make([]byte, welcomeBytes)...), false)
	f.Fuzz(func(t *testing.T, said []byte, listens bool) {
		l, d := selves()
		stranger := struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(said), io.Discard}
		var err error
		if listens {
			_, err = l.accept(stranger, func(int, uint64) verdict { t.Error("let in"); return accepted })
		} else {
			_, err = d.dial(stranger, 0)
		}
		if err == nil {
			t.Error("a stranger was taken for a rank")
		}
	})
}

// tlsConfig makes a key for one job.
func tlsConfig(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}, InsecureSkipVerify: true}
}

// Over TLS the same is exchanged, and who stands between, with a certificate of
// its own, cannot pass the proofs on.
func TestTLS(t *testing.T) {
	cfg := tlsConfig(t)
	all := openRanks(t, 2, func(c *Config) { c.TLS = cfg })
	done := make(chan error, 2)
	for _, r := range all {
		go func() { done <- exchange(r, "queue", 20, nil) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	closeAll(t, all)

	l, d := selves()
	a, b := net.Pipe()
	c, e := net.Pipe()
	other := tlsConfig(t)
	go func() { _, _ = l.accept(tls.Server(a, cfg), yes) }()
	go func() {
		victim, attacked := tls.Server(e, other), tls.Client(b, cfg)
		go func() { _, _ = io.Copy(attacked, victim) }()
		_, _ = io.Copy(victim, attacked)
	}()
	var refused *refusal
	if _, err := d.dial(tls.Client(c, cfg), 0); !errors.As(err, &refused) || refused.verdict != wrongToken {
		t.Errorf("through a stranger's hands: %v", err)
	}
	for _, x := range []net.Conn{a, b, c, e} {
		x.Close()
	}
}

// Whoever cannot prove the token changes nothing: garbage, nothing at all, half
// a handshake, a wrong token, in numbers.
func TestStrangersHaveNoEffect(t *testing.T) {
	all := openRanks(t, 2, nil)
	address := all[0].cfg.Listeners[0].Addr().String()
	_, d := selves()
	var open []net.Conn
	for i := range 3 * mostStrangers {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		h := hello{version: version, job: d.job, from: 1, size: 2, generation: 1}
		switch i % 4 {
		case 0: // nothing
		case 1:
			_, _ = c.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 1000))
		case 2:
			_, _ = c.Write(h.encode()[:50])
		case 3:
			_, _ = c.Write(append(h.encode(), make([]byte, proofBytes)...))
		}
	}
	door := all[0].door
	for full := false; !full; { // until the last was let in, at the expense of the first
		door.mu.Lock()
		if n := len(door.strangers); n > mostStrangers {
			t.Errorf("%d strangers at a time", n)
		}
		full = len(door.strangers) > 0 && door.strangers[len(door.strangers)-1].RemoteAddr().String() == lastSilent(open)
		door.mu.Unlock()
	}
	done := make(chan error, 2)
	all[1].links[0].breakUp(nil) // ranks get through all the same
	for _, r := range all {
		go func() { done <- exchange(r, "queue", 50, nil) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	closeAll(t, all)
	for _, c := range open {
		c.Close()
	}
}

// lastSilent is the address of the last stranger that says nothing or too little.
func lastSilent(open []net.Conn) string {
	for i := len(open) - 1; ; i-- {
		if i%4 == 0 || i%4 == 2 {
			return open[i].LocalAddr().String()
		}
	}
}

// What every rank must have been told alike is told when it is not.
func TestOpenRefuses(t *testing.T) {
	for what, change := range map[string]func(c *Config){
		"token":      func(c *Config) { c.Token = []byte("another") },
		"generation": func(c *Config) { c.Generation++ },
		"job":        func(c *Config) { c.Job = "another" },
	} {
		configs := configure(t, 2)
		change(&configs[1])
		ctx, cancel := context.WithCancel(context.Background())
		first := make(chan error, 1)
		go func() {
			_, err := Open(ctx, configs[0])
			first <- err
		}()
		_, err := Open(context.Background(), configs[1])
		var config *rdma.ConfigError
		if !errors.As(err, &config) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), configs[0].Listeners[0].Addr().String()) {
			t.Errorf("%s: the other rank says %v", what, err)
		}
	}
	// The dialling side names where it dialled, and why that failed.
	configs := configure(t, 2)
	configs[0].Listeners[0].Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, configs[1])
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), configs[0].Peers[0][0]) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
	for what, change := range map[string]func(c *Config){
		"no token":    func(c *Config) { c.Token = nil },
		"rank 2 of 2": func(c *Config) { c.Rank = 2 },
		"2 s or more": func(c *Config) { c.Unreachable = time.Second },
		"no address":  func(c *Config) { c.Peers = make([][]string, 2) },
		"no listener": func(c *Config) { c.Listeners = nil },
	} {
		configs := configure(t, 2)
		change(&configs[1])
		if _, err := Open(context.Background(), configs[1]); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v; expected %q", err, what)
		}
	}
}
