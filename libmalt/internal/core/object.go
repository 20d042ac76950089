package core

import (
	"errors"
	"time"

	"malt/libmalt/progress"
	"malt/libmalt/reduce"
	"malt/libmalt/rule"
	"malt/rdma"
)

// Object is a vector as a route or an engine sees it: see Carried.
type Object interface {
	Rank() int
	Size() int
	View() rdma.View
	Transport() rdma.Transport
	// Progress is the goroutine that works beside the user's.
	Progress() *progress.Loop
	// BoxName is the name under which the object is published, alike on all ranks;
	// Called is a method of it as a program writes it.
	BoxName() string
	Called(method string) string

	// Array is this rank's values, Runs their layout.
	Array() []byte
	Runs() []reduce.Run

	Clock() uint64
	// CatchUp goes over to the newest view, and carries out what a collective call of
	// another goroutine has asked for.
	CatchUp()
	// Missing tells whether to wait for a rank that has not come. An error: it died.
	Missing(rank int, gone error) (wait bool, err error)
	// Until is the collective call before which a rank has sent all that this one waits for; Ended:
	// there is none, since it is present, or makes no more calls, and may have left. For the goroutine
	// beside the user's, which goes over to no view.
	Until(rank int) (call uint64, left bool, death error)
	// Awaited tells that Missing would say so: to be asked at every look, it costs little. If
	// not, Missing may say so, too. Of boxes it knows nothing.
	Awaited(rank int) bool
	// Survives tells whether the job goes on when ranks die; Lost, whether it goes on
	// without that rank, which is dead: what it has stored stays. Adopt goes over to the
	// newest View.
	Survives() bool
	Lost(rank int) bool
	Adopt()

	// Calls is the number of the last collective call.
	Calls() uint64
	// Serve keeps the engine of an object that is closed until no other rank needs it.
	Serve(Server)

	// Folded adds to the time that folds have taken. Brought is as of a Member.
	Folded(time.Duration)
	Brought(from int, ranks []int)
}

// Boxed is an Object that also has boxes.
type Boxed interface {
	Object
	// Heard is the clock of another rank's box, and why that is gone, if it is.
	Heard(rank int) (clock uint64, gone error)
	// InBox tells whether the box of any other rank has an update of that clock whose
	// tag is not but. What was read from these boxes before is no longer valid.
	InBox(clock, but uint64) (bool, error)
	// Put copies the array into this rank's box and commits it.
	Put(rdma.Stamp) error

	// Settled is asked before each step of a sync: the generation of the view in which this
	// rank is settled. 0: it is not; late are the ranks to wait for. Given is the result at
	// clock, if a member has it: in a view after the first all ranks take that, or boxes.
	Settled() (late []int, generation uint64, err error)
	Given(clock uint64) (rdma.Update, bool)
}

// Carried is a member as an Object.
type Carried struct {
	M      *Member
	Layout []reduce.Run
}

func (c Carried) Rank() int                   { return c.M.Job.Rank }
func (c Carried) Size() int                   { return c.M.Job.Size }
func (c Carried) View() rdma.View             { return c.M.Job.View() }
func (c Carried) Transport() rdma.Transport   { return c.M.Job.T }
func (c Carried) Progress() *progress.Loop    { return c.M.Job.Progress }
func (c Carried) BoxName() string             { return c.M.BoxName() }
func (c Carried) Called(method string) string { return c.M.Called(method) }
func (c Carried) Array() []byte               { return c.M.Data }
func (c Carried) Runs() []reduce.Run          { return c.Layout }
func (c Carried) Clock() uint64               { return c.M.Clock() }
func (c Carried) Folded(d time.Duration)      { c.M.Counts.FoldTime += d }
func (c Carried) Brought(from int, rs []int)  { c.M.Brought(from, rs) }

func (c Carried) Calls() uint64  { return c.M.Job.Calls() }
func (c Carried) Serve(s Server) { c.M.Job.serve(s) }

func (c Carried) Survives() bool { return c.M.Job.Survives() }

func (c Carried) Lost(rank int) bool {
	return c.M.Job.Survives() && !c.M.Job.Marks.live(rank) && DeathIn(c.M.Job.T.State(rank)) != nil && LeftOut(c.M.Job.T, rank)
}

func (c Carried) Adopt() { c.M.Job.Adopt() }

func (c Carried) CatchUp() {
	c.Adopt()
	c.M.Body.CatchUp()
}

func (c Carried) Awaited(rank int) bool {
	j := c.M.Job
	return j.Marks.live(rank) && j.Marks.Peek(rank, MarkAway) <= j.calls.Load()
}

func (c Carried) Missing(rank int, gone error) (bool, error) {
	standing, death := c.M.Job.Standing(rank, gone)
	return rule.About(standing) == rule.Wait, death
}

func (c Carried) Until(rank int) (call uint64, left bool, death error) {
	call, standing, death := c.M.Job.standing(rank, nil)
	switch standing {
	case rule.Present:
		return Ended, false, nil
	case rule.Away:
		_, gone := c.M.Job.Marks.Get(rank, MarkAway)
		return call, errors.Is(gone, rdma.ErrLeft), nil
	}
	return 0, false, death
}

// Call is a collective call in progress that replaces an object's values. As a Stepper
// it goes by messages.
type Call interface {
	Stepper

	Number() uint64
	// Enter tells the others that this rank is in the call. It has to wait until no
	// rank writes into the array any longer. Entered: others may be waiting for it.
	Enter() (bool, error)
	Entered() bool

	// Card appends to b the header of the call, with news of this rank's objects; nil:
	// that is longer than most bytes. Unread says that no rank has read the news.
	Card(b []byte, most int) []byte
	Unread()
	// View is the one in which this rank makes the call.
	View() View
	// Alike tells whether card is of this call; Hear takes down the news of the cards
	// of these ranks, which are those of the call, and that it is of view. same: each is
	// the card of this rank.
	Alike(card []byte) bool
	Hear(ranks []int, view View, cards func(rank int) []byte, same bool)

	// Elsewhere tells whether one of these ranks makes another call instead; Lost,
	// whether the call cannot come about, or another rank has sent messages.
	Elsewhere(ranks []int) bool
	Lost() bool
	// Late are the ranks that the call waits for.
	Late() []int
	SetLate(ranks []int)

	// Fail ends the call with an error, End without one.
	Fail(err error)
	End()
}
