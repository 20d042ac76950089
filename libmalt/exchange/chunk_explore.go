//go:build explore

package exchange

const (
	chunkBytes = 64 // so that small segments have several
	chunkDepth = 1
)
