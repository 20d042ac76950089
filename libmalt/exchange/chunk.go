//go:build !explore

package exchange

const (
	// chunkBytes of a segment are sent at a time, and added up while they are in
	// the cache.
	chunkBytes = 512 << 10
	// chunkDepth chunks can be on their way to an owner: as many as a connection of
	// 10 Gbit/s holds in 1 ms, twice.
	chunkDepth = 4
	// mostSums of a segment are sent by themselves, so that links that are not equally
	// fast are busy all the same.
	mostSums = 4
)
