package tcp

import (
	"crypto/sha256"
	"net"

	"malt/rdma/internal/handshake"
)

// protocol is that of docs/developers/wire.md.
var protocol = handshake.Protocol{Magic: 0x3150_4354_544c_414d, Version: 1, Name: "MALT rdma/tcp"} // "MALTTCP1"

func newSelf(c *Config) *handshake.Self {
	return handshake.New(protocol, c.Token, handshake.Hello{
		Job: sha256.Sum256([]byte(c.Job)), From: uint32(c.Rank), Size: uint32(c.Size), Generation: c.Generation,
	})
}

// enter takes over a connection that somebody made.
func (r *rank) enter(c *net.TCPConn) (*conn, error) { return newConn(c, r.cfg.Congestion) }

// greet is a stranger's handshake. Whatever fails in it has no effect.
func (r *rank) greet(c *conn, visit handshake.Visit) {
	secure, h, err := r.self.Greet(c.raw, r.cfg.Encrypt, visit, r.permit)
	if err != nil {
		c.Close()
		return
	}
	c.Conn = secure
	r.links[h.From].offer(c)
}

// permit judges a process that has proved the token.
func (r *rank) permit(h *handshake.Hello) handshake.Verdict {
	switch {
	case h.Job != sha256.Sum256([]byte(r.cfg.Job)):
		return handshake.OtherJob
	case h.Size != uint32(r.cfg.Size):
		return handshake.OtherSize
	case h.To != uint32(r.cfg.Rank) || h.From >= h.Size || r.links[h.From] == nil:
		return handshake.NoSuchRank
	case h.Generation != r.cfg.Generation:
		return handshake.OtherGeneration
	}
	v := r.links[h.From].permit(h.Incarnation)
	if v == handshake.Accepted && h.From < h.To {
		return handshake.NoSuchRank // it only asks whether it is known to be gone
	}
	return v
}
