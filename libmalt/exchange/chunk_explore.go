//go:build explore

package exchange

const (
	chunkBytes = 64 // so that small segments have several
	chunkDepth = 1
	// mostSums of a segment are sent by themselves, so that links that are not equally
	// fast are busy all the same.
	mostSums = 4
)
