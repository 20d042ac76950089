package handshake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
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
	return Modern(&tls.Config{
		Certificates:       []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		InsecureSkipVerify: true,
	}), nil
}

// Server has a stranger speak TLS. Until it is known no more than a rank says in
// a handshake is read from it, so that it cannot have memory taken by what it
// announces.
func Server(c net.Conn, cfg *tls.Config) (secure *tls.Conn, known func()) {
	n := &narrow{Conn: c, left: mostFromStranger}
	return tls.Server(n, Modern(cfg)), func() { n.left = math.MaxInt }
}

// mostFromStranger is several times what a rank says: some 2 KB of TLS, and 136
// bytes.
const mostFromStranger = 16 << 10

// narrow is a connection from which so much can be read.
type narrow struct {
	net.Conn
	left int // used by who reads
}

var errTooMuch = fmt.Errorf("%w: it says more than a handshake takes", ErrStranger)

func (n *narrow) Read(b []byte) (int, error) {
	if n.left == 0 {
		return 0, errTooMuch
	}
	got, err := n.Conn.Read(b[:min(len(b), n.left)])
	if n.left < math.MaxInt {
		n.left -= max(got, 0)
	}
	return got, err
}

// Modern is c with the newest version of TLS only.
func Modern(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.MinVersion = tls.VersionTLS13
	return c
}

// exporter labels the keying material that a proof covers.
func (p *Protocol) exporter() string {
	return "EXPORTER-" + strings.NewReplacer(" ", "-", "/", "-").Replace(p.Name)
}
