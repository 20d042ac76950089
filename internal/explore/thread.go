package explore

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
)

// Thread is one of the threads, or processes, of a case.
type Thread struct {
	x      *Exec
	id     int
	name   string
	body   func(*Thread)
	immune bool // is not killed
	doomed bool // see Exec.Open
	daemon bool // need not come to its end

	worker *worker
	status status
	giveUp bool // the execution is over

	op     operation // of the next turn; while asleep, the wait
	quiet  int       // accesses since the last turn
	stores []store   // that have not reached memory
	alt    int       // chosen for it
	result uint64    // of the last one
	past   uint64    // hash of what the operations returned, since the last At
}

type status uint8

const (
	ready status = iota
	asleep
	done
	dead
)

// abandoned unwinds a thread whose execution is over.
type abandoned struct{}

// worker is a coroutine that runs one thread after the other: the stack it has
// grown is used again.
type worker struct {
	t      *Thread
	yield  func(struct{}) bool
	resume func() (struct{}, bool)
	stop   func()
}

func newWorker() *worker {
	w := &worker{}
	w.resume, w.stop = iter.Pull(func(yield func(struct{}) bool) {
		w.yield = yield
		for yield(struct{}{}) {
			w.t.main()
		}
	})
	w.resume()
	return w
}

func (t *Thread) main() {
	defer func() {
		t.status = done
		if r := recover(); r != nil && r != any(abandoned{}) {
			t.x.fail(fmt.Sprintf("%s panicked: %v\n%s", t.name, r, debug.Stack()))
		}
	}()
	t.body(t)
}

// run lets t go on to its next turn.
func (t *Thread) run() {
	t.x.running = t
	t.worker.resume()
	t.x.running = nil
}

// pause waits until t's operation has been performed, unless a replay goes on with t: that
// saves the way to the scheduler and back.
func (t *Thread) pause() {
	if t.x.goesOn(t) {
		return
	}
	t.worker.yield(struct{}{})
	if t.giveUp {
		panic(abandoned{})
	}
}

// abandon makes t end where it is, without any effect.
func (t *Thread) abandon() {
	if t.status != done && t.status != dead {
		t.giveUp, t.x.unwinding = true, true
		t.worker.resume()
		t.x.unwinding = false
	}
}

// note adds what the operation returned to t's past.
func (t *Thread) note() {
	if t.x.replaying {
		return
	}
	t.past = mix(mix(t.past, uint64(t.op.off)<<8|uint64(t.op.op)), t.result)
	if t.x.tracing {
		t.x.trace = append(t.x.trace, fmt.Sprintf("%-10s %s: %#x", t.name, t.x.describe(&t.op), t.result))
	}
}

// Name is the one given to Go.
func (t *Thread) Name() string { return t.name }

// At says that t is at the place called label, and that all that its further
// steps depend on, beside shared memory, is in state: what came before is
// forgotten. Structures are taken apart down to their numbers, unexported fields
// included; functions are taken as having no state, and slices of shared memory
// as their place in it.
func (t *Thread) At(label string, state ...any) {
	if t.x.replaying {
		return
	}
	h := hashString(label)
	for _, s := range state {
		h = mix(h, t.x.deep(s))
	}
	t.past = h
}

// Replaying tells that t goes where it has been before: At need not be told anything.
func (t *Thread) Replaying() bool { return t.x.replaying }

// Observe makes things that t has learned otherwise than from a Word part of its
// past, such as the contents of plain memory.
func (t *Thread) Observe(values ...any) {
	if t.x.replaying {
		return
	}
	for _, v := range values {
		t.past = mix(t.past, t.x.deep(v))
	}
}

// Returned is what the last operation of t returned. For At, where a local
// variable of the code under test still holds it.
func (t *Thread) Returned() uint64 { return t.result }

// Choose returns each of 0 … n-1, in different executions.
func (t *Thread) Choose(n int) int {
	t.op = operation{op: choose, alts: n}
	t.pause()
	return int(t.result)
}

// Await goes on at a turn at which cond holds. cond depends on shared memory
// alone, and reads it only.
func (t *Thread) Await(cond func() bool) {
	t.op = operation{op: await, cond: cond}
	t.pause()
}

// AwaitDeath goes on when one of threads was killed that is not among known, and
// returns its number and adds it there; or when none of them can be any more, and
// returns -1. It is what a kernel, or who watches the others, waits for.
func (t *Thread) AwaitDeath(threads []*Thread, known *[]int) int {
	next := func() int {
		for i, u := range threads {
			if u.Dead() && !slices.Contains(*known, i) {
				return i
			}
		}
		return -1
	}
	t.Await(func() bool {
		return next() >= 0 || !slices.ContainsFunc(threads, func(u *Thread) bool { return !u.Done() && !u.Dead() })
	})
	i := next()
	if i >= 0 {
		*known = append(*known, i)
	}
	return i
}

// Yield is a turn at which nothing is done.
func (t *Thread) Yield() { t.Await(func() bool { return true }) }

// Fail says that the code under test is wrong. It does not return.
func (t *Thread) Fail(format string, args ...any) {
	t.x.fail(t.name + ": " + fmt.Sprintf(format, args...))
	panic(abandoned{})
}
