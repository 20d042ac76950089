package explore

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
)

// Exec is one execution of a case.
type Exec struct {
	opts    Options
	setup   func(*Exec)
	arena   []byte
	used    int
	names   map[int]string // of words, by offset
	threads []*Thread
	workers []*worker // of the threads, by number
	always  func(report func(format string, args ...any))
	final   func(report func(format string, args ...any))
	running *Thread // nil between turns
	looking *Thread // whose condition is looked at
	kills   int
	opening []*Thread // what is left of it: see Open

	memory uint64 // hash of it, as of the last key

	last      int // thread that had the last turn; -1: none
	preempted int // times that it could have gone on

	unwinding bool   // threads are being given up
	replaying bool   // on known ground: nothing is hashed or judged
	ahead     []turn // of a replay, to be taken
	tracing   bool
	trace     []string
	failure   string

	// What is known of each word over all executions of the case.
	shared  []bool
	readers []uint64 // bits of threads
	writers []uint64
	again   bool // a word has become shared: start over
}

const maxThreads = 8

// Memory returns n bytes of zeroed shared memory, aligned to 64. To be called
// while the case is made.
func (x *Exec) Memory(n int) []byte {
	at := x.used
	x.used += (n + 63) &^ 63
	if x.used > len(x.arena) {
		panic(fmt.Sprintf("explore: a case has %d bytes of shared memory, not %d", len(x.arena), x.used))
	}
	return x.arena[at : at+n : at+n]
}

// Names has traces use the names that f gives to words, each by the slice that
// begins with it. f is called only when there is a trace to write.
func (x *Exec) Names(f func(name func(b []byte, name string))) {
	if !x.tracing {
		return
	}
	f(func(b []byte, name string) {
		for off := 0; off < x.used; off += 8 {
			if &x.arena[off] == &b[0] {
				x.names[off] = name
			}
		}
	})
}

// Go adds a thread. It runs up to its first access at once.
func (x *Exec) Go(name string, body func(*Thread)) *Thread {
	if len(x.threads) == maxThreads {
		panic(fmt.Sprintf("explore: a case has at most %d threads", maxThreads))
	}
	t := &Thread{x: x, id: len(x.threads), name: name, body: body}
	x.threads = append(x.threads, t)
	return t
}

// Immune keeps t from being killed.
func (t *Thread) Immune() *Thread { t.immune = true; return t }

// Doomed has t die in the opening of the case.
func (t *Thread) Doomed() { t.doomed = true }

// Endless says that the case is over without t: t need not come to its end.
func (t *Thread) Endless() *Thread { t.daemon = true; return t }

// Daemon is Endless, and is not killed.
func (t *Thread) Daemon() *Thread { return t.Endless().Immune() }

// Done tells whether t has come to its end.
func (t *Thread) Done() bool { return t.seen(t.status == done) }

// Dead tells whether t was killed.
func (t *Thread) Dead() bool { return t.seen(t.status == dead) }

// seen makes what a running thread learns about another part of its past.
func (t *Thread) seen(v bool) bool {
	if asking := t.x.running; asking != nil {
		asking.Observe(v)
	}
	return v
}

// Open has the case begin with a schedule: each of these threads goes as far as it can, in this order.
// A Doomed one is killed there, which counts as one of Options.Kills.
func (x *Exec) Open(order ...*Thread) { x.opening = order }

// Always has f judge each state, also those in which a thread is in the middle of
// something. f reads shared memory only.
func (x *Exec) Always(f func(report func(format string, args ...any))) { x.always = f }

// Final has f judge each state in which nobody can go on.
func (x *Exec) Final(f func(report func(format string, args ...any))) { x.final = f }

// report is how those who judge a state say that it is wrong.
func (x *Exec) report(format string, args ...any) { x.fail(fmt.Sprintf(format, args...)) }

func (x *Exec) fail(message string) {
	if x.failure == "" {
		x.failure = message
	}
}

// meet notes that t is about to do op to a word. Two threads on a word that one
// of them writes make it shared.
func (x *Exec) meet(t *Thread, off int, op Op) {
	w, me := off/8, uint64(1)<<t.id
	x.readers[w] |= me
	if op.writes() {
		x.writers[w] |= me
	}
	if !x.shared[w] && x.writers[w] != 0 && bits.OnesCount64(x.readers[w]|x.writers[w]) > 1 {
		x.shared[w], x.again = true, true
	}
}

// turn is one choice of the scheduler.
type turn struct {
	thread uint8
	what   uint8
	alt    uint8 // with op choose
	stops  bool  // the thread that had the last turn, which could go on
}

// What happens at a turn.
const (
	goesOn = iota
	drains // a store of the thread reaches memory
	dies
)

// turns appends what can happen next; stuck tells that nothing can, but that
// somebody is killed. A thread that chooses touches nothing: it goes first,
// alone.
func (x *Exec) turns(list []turn) (all []turn, stuck bool) {
	for _, t := range x.threads {
		if t.status == ready && t.op.op == choose {
			for alt := range t.op.alts {
				list = append(list, turn{thread: uint8(t.id), alt: uint8(alt)})
			}
			return list, false
		}
	}
	for _, t := range x.opening {
		switch {
		case x.able(t):
			return append(list, turn{thread: uint8(t.id)}), false
		case t.doomed && t.status != dead:
			return append(list, turn{thread: uint8(t.id), what: dies}), false
		}
	}
	for _, t := range x.threads {
		if x.able(t) {
			list = append(list, turn{thread: uint8(t.id)})
		}
		if len(t.stores) > 0 {
			list = append(list, turn{thread: uint8(t.id), what: drains})
		}
	}
	stuck = len(list) == 0
	if x.opts.Preemptions != 0 {
		list = x.bounded(list)
	}
	if x.kills < x.opts.Kills {
		for _, t := range x.threads {
			if !t.immune && (t.status == ready || t.status == asleep) {
				list = append(list, turn{thread: uint8(t.id), what: dies})
			}
		}
	}
	return list, stuck
}

// able tells whether t can go on.
func (x *Exec) able(t *Thread) bool {
	return t.status == ready && !t.mustDrain() && (t.op.op != await || x.holds(t))
}

// bounded leaves out of a list what would stop a thread once too often.
func (x *Exec) bounded(list []turn) []turn {
	stops := func(c turn) bool { return c.what == goesOn && int(c.thread) != x.last }
	if !slices.ContainsFunc(list, func(c turn) bool { return c.what == goesOn && int(c.thread) == x.last }) {
		return list
	}
	if x.preempted == max(x.opts.Preemptions, 0) {
		return slices.DeleteFunc(list, stops)
	}
	for i := range list {
		list[i].stops = stops(list[i])
	}
	return list
}

// moved notes who has the turn c. To choose is none.
func (x *Exec) moved(c turn) {
	for len(x.opening) > 0 && x.opening[0].id != int(c.thread) {
		x.opening = x.opening[1:]
	}
	if c.what == goesOn && x.threads[c.thread].op.op != choose {
		x.last = int(c.thread)
	}
	if c.stops {
		x.preempted++
	}
}

// holds tells whether t, which awaits something, can go on. What it looks at for
// that is not hidden from the others.
func (x *Exec) holds(t *Thread) bool {
	x.looking = t
	defer func() { x.looking = nil }()
	return t.op.cond()
}

func (x *Exec) take(c turn) {
	t := x.threads[c.thread]
	x.moved(c)
	switch c.what {
	case dies:
		t.abandon()
		x.kill(t)
	case drains:
		t.drain()
	default:
		t.alt = int(c.alt)
		x.perform(t)
		if t.status != asleep {
			t.run()
		}
	}
}

// next takes the next turn of a replay off the list.
func (x *Exec) next() turn {
	c := x.ahead[0]
	x.ahead = x.ahead[1:]
	return c
}

// goesOn lets t, which is running, have the next turn of a replay, if that is its own. It
// is false if t has to pause.
func (x *Exec) goesOn(t *Thread) bool {
	if len(x.ahead) == 0 || x.ahead[0].what != goesOn || int(x.ahead[0].thread) != t.id {
		return false
	}
	c := x.next()
	x.moved(c)
	t.alt = int(c.alt)
	x.perform(t)
	return t.status != asleep
}

func (x *Exec) kill(t *Thread) {
	x.kills++
	t.past, t.status = 0, dead
	if x.tracing {
		x.trace = append(x.trace, fmt.Sprintf("%-10s is killed", t.name))
	}
}

// peek is the key of the state right after turn c, before the thread goes on:
// enough to see that it has been there, without going there.
func (x *Exec) peek(c turn) (key uint64) {
	t := x.threads[c.thread]
	past, kills, stores := t.past, x.kills, t.stores
	last, preempted, opening := x.last, x.preempted, x.opening
	var statuses [maxThreads]status
	for i, u := range x.threads {
		statuses[i] = u.status
	}
	p, off := t.op.p, t.op.off // the word that may change
	if c.what == drains {
		p, off = t.stores[0].p, t.stores[0].off
	}
	var word uint64
	if p != nil {
		word = *p
	}

	x.moved(c)
	switch c.what {
	case dies:
		x.kill(t)
	case drains:
		t.drain()
	default:
		t.alt = int(c.alt)
		x.perform(t)
	}
	memory := x.memory
	if p != nil && *p != word {
		memory ^= x.part(off)
		*p = word
		memory ^= x.part(off)
	}
	key = mix(x.keyWith(memory), 1)

	t.past, x.kills, t.stores = past, kills, stores
	x.last, x.preempted, x.opening = last, preempted, opening
	for i, u := range x.threads {
		u.status = statuses[i]
	}
	return key
}

// key identifies the state.
func (x *Exec) key() uint64 {
	x.memory = 0
	for off := 0; off < x.used; off += partBytes {
		x.memory ^= x.part(off)
	}
	return x.keyWith(x.memory)
}

// partBytes is the length of the parts whose hashes make that of shared memory. When a word
// changes, one of them is hashed again.
const partBytes = 512

// part is the hash of the part with an offset.
func (x *Exec) part(off int) uint64 {
	at := off / partBytes * partBytes
	return mix(maphash.Bytes(seed, x.arena[at:min(at+partBytes, x.used)]), uint64(at))
}

// keyWith is the key, of shared memory with that hash.
func (x *Exec) keyWith(h uint64) uint64 {
	if x.opts.Preemptions != 0 {
		h = mix(h, uint64(x.preempted*(maxThreads+1)+x.last))
	}
	if len(x.opening) > 0 {
		h = mix(h, uint64(len(x.opening)))
	}
	for _, t := range x.threads {
		h = mix(h, t.past+uint64(t.status))
		for _, s := range t.stores {
			h = mix(h, mix(uint64(s.off), s.v))
		}
	}
	return h
}

// judge looks at a state in which nobody can go on.
func (x *Exec) judge() {
	for _, t := range x.threads {
		if (t.status == ready || t.status == asleep) && !t.daemon {
			how := "waits"
			if t.status == asleep {
				how = "sleeps"
			}
			x.fail(fmt.Sprintf("%s %s for ever, at: %s", t.name, how, x.describe(&t.op)))
			return
		}
	}
	if x.final != nil {
		x.final(x.report)
	}
}

// claim takes a free arena.
func claim() *Exec {
	const words = arenaBytes / 8
	for i := range execs {
		x := &Exec{
			arena: space[i*arenaBytes:][:arenaBytes:arenaBytes], names: map[int]string{},
			shared: make([]bool, words), readers: make([]uint64, words), writers: make([]uint64, words),
		}
		if execs[i].CompareAndSwap(nil, x) {
			return x
		}
	}
	panic(fmt.Sprintf("explore: more than %d searches at a time", arenas))
}

func (x *Exec) release() {
	clear(x.arena[:x.used])
	for _, w := range x.workers {
		w.stop()
	}
	for i := range execs {
		execs[i].CompareAndSwap(x, nil)
	}
}

// begin makes the case afresh and runs its threads up to their first turns.
func (x *Exec) begin() {
	clear(x.arena[:x.used])
	clear(x.names)
	x.used, x.threads, x.always, x.final, x.opening, x.kills, x.failure = 0, x.threads[:0], nil, nil, nil, 0, ""
	x.last, x.preempted = -1, 0
	x.setup(x)
	for i, t := range x.threads {
		if i == len(x.workers) {
			x.workers = append(x.workers, newWorker())
		}
		t.worker = x.workers[i]
		t.worker.t = t
		t.run()
	}
}

// recall ends a replay: what the threads' pasts were is known.
func (x *Exec) recall(pasts [maxThreads]uint64) {
	x.replaying = false
	for i, t := range x.threads {
		t.past = pasts[i]
	}
}

// end gives up what still runs.
func (x *Exec) end() {
	for _, t := range x.threads {
		t.abandon()
	}
}

func (x *Exec) sharedWords() (n int) {
	for _, s := range x.shared {
		if s {
			n++
		}
	}
	return n
}
