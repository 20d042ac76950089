package core

// Stepper is a call that may have to wait: a state machine that each step takes as far
// as it can go.
type Stepper interface {
	// Step goes on; it never blocks. It is not called again after done or an error.
	Step() (done bool, err error)
	// Name is the call as a program writes it; Waiting, what the last step lacked.
	Name() string
	Waiting() Wait
	// Late are the ranks that the last step lacked.
	Late() []int
	// GiveUp undoes what others must not wait for. It is called instead of further
	// steps where the time of the call is up, or a rank has died.
	GiveUp()
}

// Woken is a call that wakes this rank once for the arrival of several.
type Woken interface {
	// CameLast is the rank that came last; negative: not known.
	CameLast() int
}

// Wait is what a call could not go on without, for the error of a timeout.
type Wait struct {
	Call string // as a program writes it
	Whom string // it waited for, and where they are
	Do   string // about it
	More string // topic of the guide
}
