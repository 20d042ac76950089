package rdmatest

import (
	"fmt"
	"runtime"
	"time"
)

// Framer is a transport that counts what goes over its connections, so that one
// can tell when everything has landed.
type Framer interface {
	Rank() int
	Size() int
	// Frames is how many frames have been sent to peer and have landed from it; calm:
	// no more are to be sent; over: there is, or ever will be, nothing between the two.
	Frames(peer int) (sent, landed uint64, calm, over bool)
}

// Settle returns when no rank has anything to send to another, and everything
// that was sent has landed. All ranks must be in this process. The error, after a
// while, says what it has waited for.
func Settle(all []Framer, patience time.Duration) error {
	// Twice: what landed during the first look may have given somebody something
	// to send.
	for looks, end := 0, time.Now().Add(patience); looks < 2; looks++ {
		var busy string
		for _, t := range all {
			for peer := range t.Size() {
				if peer == t.Rank() {
					continue
				}
				sent, _, calm, over := t.Frames(peer)
				_, landed, _, _ := all[peer].Frames(t.Rank())
				if !over && (!calm || sent != landed) {
					busy += fmt.Sprintf("\nrank %d to %d: calm %v, %d frames sent, %d landed", t.Rank(), peer, calm, sent, landed)
				}
			}
		}
		if busy != "" {
			looks = -1
			runtime.Gosched()
			if time.Now().After(end) {
				return fmt.Errorf("rdmatest: not settled:%s", busy)
			}
		}
	}
	return nil
}
