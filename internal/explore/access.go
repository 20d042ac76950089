package explore

import (
	"fmt"
	"reflect"
	"sync/atomic"
)

// Op is what is done to a word.
type Op uint8

const (
	Load Op = iota
	Store
	Swap
	Add
	Or
	And
	CompareAndSwap
	futexWait
	futexWake
	choose
	await
)

var opNames = [...]string{"load", "store", "swap", "add", "or", "and", "cas", "sleep on", "wake", "choose", "go on"}

// writes tells whether op changes the word or who sleeps on it.
func (op Op) writes() bool { return op != Load && op != futexWait }

// Shared memory comes from one block, cut into an arena for each Check under
// way: so the address of a word tells whose it is, and several may run at once.
const (
	arenaBytes = 1 << 16
	arenas     = 64
)

var (
	space = make([]byte, arenas*arenaBytes)
	base  = reflect.ValueOf(space).Pointer()
	execs [arenas]atomic.Pointer[Exec]
)

// maxQuiet is after how many accesses without a turn a thread is taken to poll.
const maxQuiet = 1000

// at finds the execution and the offset of an address; nil if it is not shared
// memory of any.
func at(address uintptr) (*Exec, int) {
	off := address - base
	if off >= arenas*arenaBytes {
		return nil, 0
	}
	return execs[off/arenaBytes].Load(), int(off % arenaBytes)
}

// Access carries out op on the word *p at that address, at the turn of the
// thread that asks. It is called by mem.Word. Words outside of any case's memory
// are accessed at once.
func Access(address uintptr, p *uint64, op Op, a, b uint64) uint64 {
	x, off := at(address)
	if x == nil {
		return direct(p, op, a, b)
	}
	if x.running == nil { // while a case is made or judged
		if x.unwinding { // what a killed process would have done on its way out is not done
			return 0
		}
		if x.looking != nil {
			x.meet(x.looking, off, Load)
		}
		return apply(p, op, a, b)
	}
	t := x.running
	x.meet(t, off, op)
	t.op = operation{op: op, off: off, p: p, a: a, b: b}
	if t.quiet++; t.quiet > maxQuiet { // it waits for somebody who has had no turn yet
		x.shared[off/8], x.again = true, true
	}
	if x.shared[off/8] || t.mustDrain() {
		t.quiet = 0
		t.pause()
	} else {
		x.perform(t)
	}
	return t.result
}

// operation is what a thread does at its next turn.
type operation struct {
	op   Op
	off  int
	p    *uint64
	a, b uint64
	cond func() bool // of await
	alts int         // of choose
}

// perform carries out t's operation. It is all that happens to shared memory and
// to other threads before t goes on, and can be undone: see peek.
func (x *Exec) perform(t *Thread) {
	o := &t.op
	t.result = 0
	switch o.op {
	case await:
	case choose:
		t.result = uint64(t.alt)
	case futexWait:
		if uint32(*o.p) == uint32(o.a) {
			t.status, t.result = asleep, 1
		}
	case futexWake:
		for _, u := range x.threads {
			if u.status == asleep && u.op.off == o.off && t.result < o.a {
				u.status = ready
				t.result++
			}
		}
	default:
		if !x.opts.Buffered || !t.buffer(o) {
			t.result = apply(o.p, o.op, o.a, o.b)
		}
	}
	t.note()
}

// apply needs no atomics: one thread of a case runs at a time.
func apply(p *uint64, op Op, a, b uint64) (v uint64) {
	v = *p
	switch op {
	case Store:
		*p, v = a, 0
	case Swap:
		*p = a
	case Add:
		*p += a
		v = *p
	case Or:
		*p |= a
	case And:
		*p &= a
	case CompareAndSwap:
		if *p != a {
			return 0
		}
		*p, v = b, 1
	}
	return v
}

func direct(p *uint64, op Op, a, b uint64) uint64 {
	switch op {
	case Store:
		atomic.StoreUint64(p, a)
	case Swap:
		return atomic.SwapUint64(p, a)
	case Add:
		return atomic.AddUint64(p, a)
	case Or:
		return atomic.OrUint64(p, a)
	case And:
		return atomic.AndUint64(p, a)
	case CompareAndSwap:
		if atomic.CompareAndSwapUint64(p, a, b) {
			return 1
		}
	default:
		return atomic.LoadUint64(p)
	}
	return 0
}

// Wait is a futex wait without a timeout: it sleeps until woken if the low half
// of the word is that of seen. It tells whether the word is shared memory of a
// case; if not, nothing was done.
func Wait(address uintptr, p *uint64, seen uint64) bool {
	x, off := at(address)
	if x == nil || x.running == nil {
		return x != nil
	}
	t := x.running
	x.meet(t, off, futexWait)
	x.meet(t, off, futexWake) // who sleeps is shared, whether or not the word is written
	t.op = operation{op: futexWait, off: off, p: p, a: seen}
	t.pause()
	return true
}

// Wake wakes at most n of those who sleep on the word. It tells whether the word
// is shared memory of a case.
func Wake(address uintptr, n int) bool {
	x, off := at(address)
	if x == nil || x.running == nil {
		return x != nil
	}
	t := x.running
	x.meet(t, off, futexWake)
	t.op = operation{op: futexWake, off: off, a: uint64(n)}
	t.pause()
	return true
}

func (x *Exec) describe(o *operation) string {
	if o.op == choose || o.op == await {
		return opNames[o.op]
	}
	name, ok := x.names[o.off]
	if !ok {
		name = fmt.Sprintf("word %d", o.off)
	}
	switch o.op {
	case Store, Swap, Add, Or, And:
		return fmt.Sprintf("%s %s, %#x", opNames[o.op], name, o.a)
	case CompareAndSwap:
		return fmt.Sprintf("%s %s, %#x for %#x", opNames[o.op], name, o.b, o.a)
	}
	return opNames[o.op] + " " + name
}
