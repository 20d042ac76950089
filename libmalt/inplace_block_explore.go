//go:build explore

package libmalt

const (
	blockBytes = cutBytes // so that small arrays have several
	cardBytes  = 96
)
