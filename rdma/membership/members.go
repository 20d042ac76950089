package membership

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"malt/rdma/vote"
)

const (
	// tick is the most that passes between two looks, and between two sendings of a frame
	// that has not been answered.
	tick = 50 * time.Millisecond
	// askEach is the time between two questions whether something has been decided.
	askEach = 500 * time.Millisecond
	// muteAfter is the time without an answer after which all ranks of a host count as stopped.
	muteAfter = 4 * askEach
)

// Home is the page of this host.
type Home interface {
	vote.Store
	// Living are the ranks of this host of which it is not known that their process has
	// ended: as on one host, those that have left in good order, too.
	Living() vote.Set
	// OnDeath has wake called whenever the process of one of them is found to have ended.
	OnDeath(wake func())
	// LeaveOut notes for all ranks of this host that the others have gone on without it, or may
	// have, for good. Out tells whether one of them has. They are called at any time.
	LeaveOut()
	Out() bool
	// Enter keeps the home from being closed until Exit; false once it is.
	Enter() bool
	Exit()
}

// Net is what carries frames to other hosts, and what it knows of their ranks. None of its
// methods blocks: the home is entered meanwhile.
type Net interface {
	// Post sends a frame soon, or loses it. It keeps no part of body.
	Post(peer int, k vote.Kind, arg uint32, body []byte)
	Doubted(peer int) bool // nothing that was sent to it is acknowledged
	Gone(peer int) bool    // its process has ended for certain
	// Left tells whether it has left in good order, and what it said then (Members.Farewell).
	Left(peer int) (farewell uint64, left bool)
	// Review says that there is a newer view, or that this rank is out: links with those
	// that are left out end, and waits of this rank look again.
	Review()
}

// Config says who decides for whom.
type Config struct {
	Job  vote.Job
	Rank int
	// Unreachable is for how long a host may be silent that others hear.
	Unreachable time.Duration
}

// Members decides, together with those of the other ranks, who takes part. Its methods may
// be called by any goroutine. Land, Has, Expelled and Wake never block.
type Members struct {
	c     Config
	host  int     // of this rank
	on    [][]int // the ranks of each host
	voter vote.Voter
	home  Home
	net   Net

	// Shared.
	inbox chan frame
	wake  chan struct{}
	view  atomic.Pointer[vote.View] // the newest that is known; stored by the goroutine
	out   atomic.Pointer[error]     // final; stored once
	lack  atomic.Pointer[lack]      // stored by the goroutine
	final atomic.Bool               // some lack has been: Stuck says more than Out
	calls calls
	bye   atomic.Uint64   // stored by Close
	life  context.Context // ends with Close
	end   context.CancelFunc
	runs  sync.WaitGroup

	// The goroutine's.
	see        vote.Sight
	doubts     vote.Doubts
	lost       vote.Set    // hosts of the view that are silent, or have ended without leaving
	heard      []time.Time // when the last frame of each host landed
	proposal   *vote.Proposal
	turn       turn
	inquiry    inquiry // of ask
	doom       inquiry // of doomed
	questions  uint64  // of both
	confirming []*call // of Confirm, from before the inquiry began
	stirred    bool    // a host is missed, or this one has made a promise: something may be decided
	uneasy     bool    // it may have been, since all hosts last answered
	known      news    // by the net
	body       []byte
}

// New makes the members of a rank. Frames that land before Start wait for it.
func New(c Config, home Home, net Net) *Members {
	m := &Members{
		c: c, host: c.Job.Of[c.Rank], on: make([][]int, c.Job.Hosts), home: home, net: net,
		voter: vote.Voter{Store: home, Job: c.Job, Host: c.Job.Of[c.Rank]},
		inbox: make(chan frame, 256+len(c.Job.Of)), wake: make(chan struct{}, 1),
		lost: vote.NewSet(c.Job.Hosts), heard: make([]time.Time, c.Job.Hosts),
	}
	for rank, host := range c.Job.Of {
		m.on[host] = append(m.on[host], rank)
	}
	m.see = vote.Sight{Dead: vote.NewSet(c.Job.Hosts), Left: vote.NewSet(c.Job.Hosts), Doubted: vote.NewSet(c.Job.Hosts), Unreachable: c.Unreachable}
	m.view.Store(&vote.View{Generation: 1, Members: c.Job.Everyone()})
	m.known.generation = 1
	m.life, m.end = context.WithCancel(context.Background())
	return m
}

// Start has it look, answer and propose.
func (m *Members) Start() {
	m.home.OnDeath(m.Wake)
	m.runs.Go(m.run)
}

// Close ends that, before the transport leaves: a rank that others take to have left
// does not vote.
func (m *Members) Close() {
	m.end()
	m.runs.Wait()
	if m.home.Enter() {
		m.bye.Store(m.voter.Farewell())
		m.home.Exit()
	}
}

// Farewell is what this rank says when it leaves, after Close: see vote.Voter.Farewell.
func (m *Members) Farewell() uint64 { return m.bye.Load() }

// Wake says that something may have changed, as a death does.
func (m *Members) Wake() {
	select {
	case m.wake <- struct{}{}:
	default: // it is about to look
	}
}

// View is the newest that this rank has seen its host know.
func (m *Members) View() vote.View { return *m.view.Load() }

// Has tells whether rank is in it.
func (m *Members) Has(rank int) bool { return m.view.Load().Ranks.Has(rank) }

func (m *Members) run() {
	defer m.end()
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for {
		var frames []frame
		select {
		case <-m.life.Done():
			return
		case f := <-m.inbox:
			frames = append(frames, f)
			for range len(m.inbox) {
				frames = append(frames, <-m.inbox)
			}
		case <-m.wake:
		case <-clock.C:
		}
		if !m.home.Enter() {
			return
		}
		m.step(time.Now(), frames)
		m.home.Exit()
	}
}

// step takes in what has landed, and does what is due.
func (m *Members) step(now time.Time, frames []frame) {
	m.follow()
	m.look(now)
	for _, f := range frames {
		m.receive(now, f)
	}
	m.count() // somebody may have died since
	out := m.Out() != nil
	if !out {
		m.propose(now)
		m.ask(now)
	}
	answered := m.calls.settle(m)
	_, final := m.Stuck()
	if now := (news{m.View().Generation, out, final}); answered || m.known != now {
		m.known = now
		m.net.Review()
	}
}

// news are what Review tells of.
type news struct {
	generation uint64
	out, final bool
}

// follow goes over to the view of the page, which any rank of the host may have changed.
func (m *Members) follow() {
	before, v := m.View(), m.home.View()
	if v.Generation == before.Generation {
		return
	}
	m.view.Store(&v)
	m.proposal, m.turn = nil, turn{}
	m.inquiry.q, m.doom = nil, inquiry{} // begin again in this view
	if !v.Ranks.Has(m.c.Rank) {
		m.leftOut(before, v)
	}
}
