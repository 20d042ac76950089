//go:build explore

package libmalt

const (
	blockBytes  = cutBytes // so that small arrays have several
	reduceBytes = 0
)
