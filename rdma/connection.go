package rdma

import "time"

// Connected is a Transport that knows how it stands with what leads to a rank, for
// messages about long waits.
type Connected interface {
	Connection(peer int) Connection
}

// Locking is a Transport that goes without RDMA where this process may lock too little memory: limit, of
// the need bytes; need is 0 where it does not.
type Locking interface {
	Memlock() (limit, need uint64)
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
	Full    bool          // its kernel has no room: its process takes nothing
	Large   bool          // its host answers, but for large packets, which arrive neither at once nor when sent again
}
