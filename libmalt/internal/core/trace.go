package core

import (
	"encoding/binary"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Now is what a rank is doing, in memory that other processes of its user can map while it
// runs: `malt top` and `malt stack` read it (python/malt/_ranks/seen.py has the same
// layout). The rank alone writes. Each field is one word. Texts lie behind a count, as a place
// does (place.go): it is odd while the text is being changed.
type Now struct {
	Magic, Pid, Rank, Size atomic.Uint64 // Magic comes last
	Near, Job              atomic.Uint64 // ranks of this machine, 0 until all have joined; the job's number
	Joined, Room           atomic.Uint64 // when, by CLOCK_MONOTONIC; how many events there is room for

	doing    atomic.Uint64 // see Marks.Note
	syncs    atomic.Uint64 // scatters
	bytes    atomic.Uint64 // sent in them and in collective calls
	age      atomic.Uint64 // of the oldest update of the last gather that folded any
	used     atomic.Uint64 // as doing: the vector used before the last collective call
	recorded atomic.Uint64 // events, since the start
	since    atomic.Uint64 // when the rank fell asleep in its call; 0: it is awake
	loss     atomic.Uint64 // the last value that was logged as loss
	late     [rankWords]atomic.Uint64
	dead     [rankWords]atomic.Uint64
	losses   atomic.Uint64 // how many there were
	mark     words
	place    words
	slept    atomic.Uint64 // nanoseconds, in waits that are over
	advice   words         // on the present wait, once it is long
	host     words         // as it calls itself
}

// NowMagic names the layout.
const NowMagic = 0x34574f4e_544c414d // "MALTNOW4"

const rankWords = 16 // a bit for each rank of the largest job

type words struct {
	count atomic.Uint64
	text  [placeWords]atomic.Uint64
}

func (w *words) set(text string) {
	count := w.count.Load()>>lengthBits + 1
	w.count.Store(count << lengthBits)
	w.count.Store((count+1)<<lengthBits | uint64(putText(w.text[:], text)))
}

// putText stores what there is room for, and returns how many bytes that is.
func putText(to []atomic.Uint64, text string) int {
	var bytes [8 * placeWords]byte
	n := copy(bytes[:8*len(to)], text)
	for i := range (n + 7) / 8 {
		to[i].Store(binary.LittleEndian.Uint64(bytes[8*i:]))
	}
	return n
}

// putRanks stores the set of ranks.
func putRanks(to []atomic.Uint64, ranks []int) {
	var set [rankWords]uint64
	for _, r := range ranks {
		if r < 64*len(to) {
			set[r/64] |= 1 << (r % 64)
		}
	}
	for i := range to {
		if to[i].Load() != set[i] { // a store is an exchange
			to[i].Store(set[i])
		}
	}
}

// Event is a record in the ring behind Now. Its first word is its number, from 1, or 0 while
// it is being written: a reader looks at it before and after the rest.
type Event [32]atomic.Uint64

// Kinds of events.
const (
	EventCall  = iota + 1 // text: as a program writes it; value: 1 if it failed
	EventWait             // ranks: those waited for
	EventFold             // ranks: the senders; value: the object and the reader's clock; text: see Folded
	EventDeath            // ranks: those that have died; value: the generation of the view without them
	EventMark             // text
	EventLog              // text: the name; value
	EventSend             // ranks: the receivers; value: the object and the update's clock; text: the bytes sent, a word
)

// Words of an event: number, kind with the length of the text, begin and duration in
// nanoseconds, value, then the ranks and the text. A value is a float64, or an object and a
// clock as in Marks.Note.
const (
	eventRanks = 5
	eventText  = eventRanks + rankWords
)

// Trace is a rank as others see it. A rank that nobody can see has one, too.
type Trace struct {
	*Now
	events []Event
	epoch  time.Time // of the clock,
	base   uint64    // and what CLOCK_MONOTONIC was then
	mu     sync.Mutex
}

// NewTrace is for memory that is zero. Events are recorded if there is room for some. monotonic reads
// CLOCK_MONOTONIC, by which other processes order the events of all ranks.
func NewTrace(now *Now, events []Event, monotonic func() uint64) *Trace {
	t := &Trace{Now: now, events: events}
	// Where the process loses its core between the two clocks, they do not belong together.
	for least, tries := time.Duration(math.MaxInt64), 0; tries < 8; tries++ {
		epoch := time.Now()
		base := monotonic()
		if took := time.Since(epoch); took < least {
			least, t.epoch, t.base = took, epoch, base
		}
	}
	now.Room.Store(uint64(len(events)))
	now.Joined.Store(t.base)
	host, _ := os.Hostname()
	now.host.set(host)
	return t
}

func (t *Trace) clock() uint64 { return t.base + uint64(time.Since(t.epoch)) }

// Begin is when something begins that Record may tell of; 0: nothing is recorded.
func (t *Trace) Begin() uint64 {
	if len(t.events) == 0 {
		return 0
	}
	return t.clock()
}

// Record adds an event that began then; nothing if Begin was 0. The oldest is overwritten.
func (t *Trace) Record(begun uint64, kind int, ranks []int, value uint64, text string) {
	if begun != 0 {
		t.record(begun, t.clock(), kind, ranks, value, text)
	}
}

func (t *Trace) record(begun, end uint64, kind int, ranks []int, value uint64, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.recorded.Load() + 1
	e := &t.events[(n-1)%uint64(len(t.events))]
	e[0].Store(0)
	e[2].Store(begun)
	e[3].Store(end - begun)
	e[4].Store(value)
	putRanks(e[eventRanks:eventText], ranks)
	e[1].Store(uint64(kind) | uint64(putText(e[eventText:], text))<<8)
	e[0].Store(n)
	t.recorded.Store(n)
}

// Scattered books an update, which was sent then.
func (t *Trace) Scattered(begun uint64, m *Member, clock uint64, to []int, bytes int) {
	t.syncs.Add(1)
	t.bytes.Add(uint64(bytes))
	if begun != 0 {
		var text [8]byte
		binary.LittleEndian.PutUint64(text[:], uint64(bytes))
		t.Record(begun, EventSend, to, where(0, m.ID, clock), string(text[:]))
	}
}

// called tells of a call that is over.
func (t *Trace) called(begun uint64, name string, err error) {
	failed := 0.0
	if err != nil {
		failed = 1
	}
	t.Record(begun, EventCall, nil, math.Float64bits(failed), name)
}

// Aged shows the age of the oldest update of a gather.
func (t *Trace) Aged(age int64) {
	if t.age.Load() != uint64(age) {
		t.age.Store(uint64(age))
	}
}

// happens records an event without a length.
func (t *Trace) happens(kind int, ranks []int, value uint64, text string) {
	if at := t.Begin(); at != 0 {
		t.record(at, at, kind, ranks, value, text)
	}
}

// Averaged tells of updates that a rank has folded in the course of a wait. It has no length, since that
// wait is divided later, wherever another rank came: what is drawn of the two would cross.
func (t *Trace) Averaged(m *Member, clock uint64, ranks []int) {
	t.happens(EventFold, ranks, where(0, m.ID, clock), "")
}

// Folded tells of updates that a rank has folded, as long as it took. ages has a signed byte for
// each of the first of ranks, in their order, where not all are 0; NoAge: it does not fit.
func (t *Trace) Folded(begun uint64, m *Member, clock uint64, ranks []int, ages []byte) {
	if begun != 0 {
		t.Record(begun, EventFold, ranks, where(0, m.ID, clock), string(ages))
	}
}

// NoAge is an age that is not told.
const NoAge = math.MinInt8

// Mark notes a text, such as "epoch 3".
func (t *Trace) Mark(text string) {
	t.mark.set(text)
	t.happens(EventMark, nil, 0, text)
}

// Log notes a value, such as a loss.
func (t *Trace) Log(name string, value float64) {
	if name == "loss" {
		t.loss.Store(math.Float64bits(value))
		t.losses.Add(1)
	}
	t.happens(EventLog, nil, math.Float64bits(value), name)
}

// Seen says that all ranks have joined, and how many of them are on this machine. Waits are
// counted from here on.
func (j *Job) Seen() {
	j.counts.WaitTime = 0
	clear(j.counts.Edges)
	j.Marks.Trace.Near.Store(uint64(len(j.T.Near())))
}

// died notes that the job goes on without ranks.
func (t *Trace) died(v View, ranks ...int) {
	for _, r := range ranks {
		if r < 64*rankWords {
			t.dead[r/64].Or(1 << (r % 64))
		}
	}
	t.happens(EventDeath, ranks, math.Float64bits(float64(v.Generation)), "")
}

// lateness measures one wait, and tells of it: it is its waiter's.
type lateness struct {
	counts *Stats
	waits  bool
	begun  uint64 // when it began to wait for these
	ranks  []int
	still  []int  // room for cause
	since  uint64 // when it fell asleep; 0: it did not
	sleeps bool   // it did in this part
	told   bool   // what to do about it is shown
}

// look is for each step of op that could not go on. A wait has a part for each set of ranks.
func (l *lateness) look(t *Trace, op Stepper) {
	late := op.Late()
	if l.waits && slices.Equal(late, l.ranks) {
		return // for many a look
	}
	now := t.clock()
	l.book(t, now, op)
	l.waits, l.begun, l.ranks, l.sleeps = true, now, append(l.ranks[:0], late...), false
}

// book is for the end of a part.
func (l *lateness) book(t *Trace, now uint64, op Stepper) {
	if !l.waits {
		return
	}
	l.counts.waited(time.Duration(now-l.begun), l.cause(op))
	if len(t.events) > 0 && len(l.ranks) > 0 {
		t.record(l.begun, now, EventWait, l.ranks, 0, "") // up to where the next part begins
	}
}

// cause is whom the part was for. A rank that slept through the arrivals of several has waited
// for the last of them, or for those that have yet to come.
func (l *lateness) cause(op Stepper) []int {
	if !l.sleeps || len(l.ranks) < 2 {
		return l.ranks
	}
	if w, ok := op.(Woken); ok {
		if at := slices.Index(l.ranks, w.CameLast()); at >= 0 {
			return l.ranks[at : at+1]
		}
	}
	l.still = l.still[:0]
	for _, rank := range op.Late() {
		if slices.Contains(l.ranks, rank) {
			l.still = append(l.still, rank)
		}
	}
	if len(l.still) > 0 {
		return l.still
	}
	return l.ranks
}

// asleep shows the wait, once it sleeps: most last less than what that costs.
func (l *lateness) asleep(t *Trace, op Stepper) {
	l.sleeps = true
	putRanks(t.late[:], op.Late())
	if l.since == 0 {
		l.since = t.clock()
		t.since.Store(l.since)
	}
}

// long shows what to do about a wait of which its caller hears.
func (l *lateness) long(t *Trace, advice string) {
	l.told = true
	t.advice.set(advice)
}

func (l *lateness) end(t *Trace, op Stepper) {
	if l.told {
		t.advice.set("")
	}
	if l.since != 0 {
		t.since.Store(0)
		t.slept.Add(t.clock() - l.since)
	}
	if l.waits {
		l.book(t, t.clock(), op)
	}
	l.waits, l.since, l.told = false, 0, false
}
