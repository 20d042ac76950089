package rdma

import "time"

// Connected is a Transport that knows how it stands with what leads to a rank, for
// messages about long waits.
type Connected interface {
	Connection(peer int) Connection
}

// Lacking is a Transport that tells where it has come to do without RDMA; nil: nowhere.
type Lacking interface {
	Lacks() *Lack
}

// Lack of RDMA: between this rank and Rank, since it has failed; or, where Need is not 0, altogether, since this rank
// may lock Limit of the Need bytes.
type Lack struct {
	Rank        int
	Why         error // it has failed
	Limit, Need uint64
}

// Connection is what is known of how a rank is reached; the zero value is nothing.
type Connection struct {
	Stopped bool // its process is stopped, by a signal or a debugger; known of near ranks alone

	// Of a rank on another host.
	Address string        // "" where there is no connection
	Over    time.Duration // over how long the next three have been counted; 0: not yet
	Acked   uint64        // bytes that its kernel has acknowledged
	Heard   uint64        // bytes that came from it
	Resent  uint64        // bytes that were sent to it again
	Queued  int           // bytes that wait in this kernel, sent or not, until its kernel acknowledges them
	Ahead   int           // packets of it that came before one which was sent earlier
	Full    bool          // its kernel has no room: its process takes nothing
	Large   bool          // its host answers, but for large packets, which arrive neither at once nor when sent again
}
