//go:build !explore

package libmalt

const (
	blockBytes = 32 << 10
	cardBytes  = 4 << 10 // for some 190 objects
)
