//go:build !explore

package libmalt

const (
	blockBytes  = 32 << 10
	reduceBytes = 4 << 10 // from where an allreduce is done in place
)
