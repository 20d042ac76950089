//go:build explore

package codec

import (
	"malt/libmalt/internal/core"
	"malt/libmalt/spvec"
)

// Explored is the codec of a model for the exhaustive checks, without a transport.
func Explored(m *core.Member, shape spvec.Shape) Codec {
	return &model{rows: rows{m: m, shape: shape}, shadow: make([]byte, shape.Bytes()), sent: make([]uint64, m.Job.Size)}
}

// Scratch are the fields of a codec that are always written before they are read, or that
// are not its own.
var Scratch = []string{"m", "found", "us", "values", "wholes", "folder", "spare", "ages"}
