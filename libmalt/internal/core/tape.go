package core

import "malt/libmalt/rule"

// Tape is what a job has to do with recorded runs: this one is recorded, or replays another one.
type Tape interface {
	// Record notes a gather. ends: why it was the last; it may be without an end.
	Record(g rule.Gathered) (ends error)
	// Replay is what that object has done in the recorded run; nil: this is no replay.
	Replay(object uint32) *rule.Replay
}
