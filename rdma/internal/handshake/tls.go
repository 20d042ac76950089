package handshake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"strings"
	"time"
)

// TLS makes a configuration for both ends of connections that are encrypted,
// with a key that lives as long as the process. Its certificate proves nothing:
// the proof of the token does, which covers the TLS session.
func TLS() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(10, 0, 0)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Certificates:       []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		InsecureSkipVerify: true,
	}, nil
}

// Encryption says which connections are encrypted. Both ends must come to the same.
type Encryption int

const (
	ByAddress Encryption = iota // those of which an end has an address that is not private
	Always
	Never
)

// Wants tells whether a connection is to be encrypted. Private are the addresses of
// RFC 1918 and RFC 4193, loopback and link-local ones. Those that a carrier shares among its
// customers (RFC 6598) are not.
func (e Encryption) Wants(c net.Conn) bool {
	return e == Always || e == ByAddress && (public(c.LocalAddr()) || public(c.RemoteAddr()))
}

func public(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := t.AddrPort().Addr().Unmap()
	return !ip.IsPrivate() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast()
}

// Secure is the connection c that this end has dialled, or TLS over it.
func (s *Self) Secure(c net.Conn, e Encryption) (net.Conn, error) {
	if !e.Wants(c) {
		return c, nil
	}
	cfg, err := s.tls()
	if err != nil {
		return nil, err
	}
	return tls.Client(c, cfg), nil
}

// Greet is Accept of a connection that a stranger made. It returns the connection to
// go on with, which is c or TLS over it.
//
// visit hears how far it has come. The stranger is answered in the way in which it speaks, but a rank that does not
// encrypt as this one does is let in by neither: once it has proved the token both
// know, and nobody else could have told them. Until then no more than a rank says in
// a handshake is read, so that nobody can have memory taken by what it announces.
func (s *Self) Greet(c net.Conn, e Encryption, visit Visit, permit func(*Hello) Verdict) (net.Conn, *Hello, error) {
	n := &narrow{Conn: c, left: mostFromStranger}
	secure, err := n.secure()
	if err != nil {
		return nil, nil, err
	}
	visit.Spoke()
	rw, alike, in := net.Conn(n), secure == e.Wants(c) || secure && e == ByAddress, false
	if secure {
		cfg, err := s.tls()
		if err != nil {
			return nil, nil, err
		}
		rw = tls.Server(n, cfg)
	}
	h, err := s.Accept(rw, func(h *Hello) Verdict {
		if !alike {
			return OtherEncryption
		}
		n.left, in = math.MaxInt, visit.Known()
		return permit(h)
	})
	if err == nil && !in {
		err = net.ErrClosed
	}
	if err == nil && !secure {
		rw = c
	}
	return rw, h, err
}

// mostFromStranger is several times what a rank says: some 2 KB of TLS, and 136
// bytes.
const mostFromStranger = 16 << 10

// narrow is a connection from which so much can be read.
type narrow struct {
	net.Conn
	left  int    // used by who reads, as is ahead
	ahead []byte // read already
}

// secure tells whether the other end begins as TLS does, with a handshake record.
func (n *narrow) secure() (bool, error) {
	b := make([]byte, 1)
	_, err := io.ReadFull(n, b)
	n.ahead = b
	return b[0] == 22, err
}

var errTooMuch = fmt.Errorf("%w: it sends more than a handshake needs", ErrStranger)

func (n *narrow) Read(b []byte) (int, error) {
	if n.left == 0 {
		return 0, errTooMuch
	}
	if len(n.ahead) > 0 && len(b) > 0 {
		got := copy(b, n.ahead)
		n.ahead = n.ahead[got:]
		return got, nil
	}
	got, err := n.Conn.Read(b[:min(len(b), n.left)])
	if n.left < math.MaxInt {
		n.left -= max(got, 0)
	}
	return got, err
}

// exporter labels the keying material that a proof covers.
func (p *Protocol) exporter() string {
	return "EXPORTER-" + strings.NewReplacer(" ", "-", "/", "-").Replace(p.Name)
}
