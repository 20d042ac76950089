//go:build explore

package core

// BlockBytes of each array are folded at a time: small arrays have several blocks.
const BlockBytes = CutBytes
