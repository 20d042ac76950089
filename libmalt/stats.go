package libmalt

import "malt/libmalt/internal/core"

// Stats is what an object has done since it was made, Edge what went to and came from one
// rank.
type (
	Stats = core.Stats
	Edge  = core.Edge
)
