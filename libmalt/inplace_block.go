//go:build !explore

package libmalt

const blockBytes = 32 << 10
