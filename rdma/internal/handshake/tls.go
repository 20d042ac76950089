package handshake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
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
