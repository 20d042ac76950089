//go:build explore

package codec

import (
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
)

// Explored is the codec of a model for the exhaustive checks, without a transport.
func Explored(m *core.Member, shape spvec.Shape) Codec {
	return &model{rows: rows{m: m, shape: shape}, shadow: make([]byte, shape.Bytes()), sent: make([]uint64, m.Job.Size)}
}

// ExploredChanges is that of changes.
func ExploredChanges(m *core.Member, runs []reduce.Run, op reduce.Op) Codec {
	p := newChanges(m, runs, op)
	p.lay(make([]byte, reduce.TotalsBytes(runs)))
	return p
}

// ScratchOfChanges is as Scratch.
var ScratchOfChanges = []string{"dense", "runs", "op", "mapped", "sums", "Runs", "srcs", "room"}

// Scratch are the fields of a codec that are always written before they are read, or that
// are not its own.
var Scratch = []string{"m", "found", "us", "values", "wholes", "folder", "spare", "ages", "filter", "far"}
