package rendezvous

import (
	"fmt"
	"strings"

	"malt/rdma"
)

// Config says who joins what.
type Config struct {
	Rank, Size int
	Store      string // "local:" and the job's id, 1 to 64 hexadecimal digits
	Token      string // secret of the job; the same on every rank, may be empty
}

const scheme = "local:"

// job checks c and returns the job's id.
func (c *Config) job() (string, error) {
	if c.Size < 1 || c.Size > MaxSize {
		return "", configError("size %d; expected 1 to %d ranks", c.Size, MaxSize)
	}
	if c.Rank < 0 || c.Rank >= c.Size {
		return "", configError("rank %d; expected 0 to %d for size %d", c.Rank, c.Size-1, c.Size)
	}
	if len(c.Token) > 256 {
		return "", configError("token of %d bytes; at most 256", len(c.Token))
	}
	id, ok := strings.CutPrefix(c.Store, scheme)
	if !ok || len(id) < 1 || len(id) > 64 || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
		return "", configError("store %q; expected local: and 1 to 64 hexadecimal digits, such as local:5eed", c.Store)
	}
	return id, nil
}

func configError(format string, args ...any) error {
	return &rdma.ConfigError{Text: "rendezvous: " + fmt.Sprintf(format, args...)}
}
