//go:build !explore

package core

// BlockBytes of each array are folded at a time.
const BlockBytes = 32 << 10
