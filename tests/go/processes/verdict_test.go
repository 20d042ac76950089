package processes

import (
	"errors"
	"time"

	"malt/internal/fleet"
	"malt/libmalt"
	"malt/rdma"
)

// patience bounds every wait of a rank: longer is a hang. The wait's own
// sentence says for whom.
var patience = fleet.Patience / 3

// arrival is how long ranks wait for one that may die before it joins.
const arrival = 1500 * time.Millisecond

// verdict is what a rank reports when it is done with its plan.
type verdict struct {
	Outcome string        // see below
	Text    string        // the error
	Dead    int           // whom it names
	Joining bool          // it came from the call that joins
	Began   time.Duration // when the call that gave it began and ended, of now
	Ended   time.Duration
	Tally   tally
}

// Outcomes.
const (
	fine    = "fine"
	peer    = "peer is dead" // and the error names it
	absent  = "peer has not arrived"
	missed  = "peer has left" // a collective call lacked it
	failure = "failure"

	expelled = "the others have gone on without this rank"
)

// callError is an error of MALT's, with the call that gave it.
type callError struct {
	call         string
	began, ended time.Duration
	err          error
}

func (e *callError) Error() string { return e.call + ": " + e.err.Error() }

func (e *callError) Unwrap() error { return e.err }

// judge says what an error means.
func (x *runner) judge(err error) verdict {
	v := verdict{Outcome: fine}
	if err == nil {
		return v
	}
	v.Outcome, v.Text = failure, err.Error()
	var call *callError
	if !errors.As(err, &call) {
		return v
	}
	v.Began, v.Ended, v.Joining = call.began, call.ended, call.call == "join"
	var dead *rdma.PeerError
	switch {
	case errors.As(err, &dead) && (x.plan.deathOf(dead.Rank) != nil || x.plan.fatal() && x.plan.weather.separates(x.me(), dead.Rank)):
		v.Outcome, v.Dead = peer, dead.Rank
	case errors.Is(err, rdma.ErrExpelled) && x.plan.mayLive(x.me()):
		v.Outcome = expelled
		x.page.at(x.me(), died).Store(int64(now()))
	case x.plan.earlyDeaths() && v.Joining:
		v.Outcome = absent
	case x.plan.end == desert && x.phase == len(x.plan.phases)-1 && errors.Is(err, libmalt.ErrLeft):
		v.Outcome = missed
	}
	return v
}
