package explore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// word does what mem.Word does under the build tag.
type word uint64

func at0(b []byte, i int) *word { return (*word)(unsafe.Pointer(&b[8*i])) }

func (w *word) do(op Op, a, b uint64) uint64 {
	return Access(uintptr(unsafe.Pointer(w)), (*uint64)(w), op, a, b)
}
func (w *word) load() uint64           { return w.do(Load, 0, 0) }
func (w *word) store(v uint64)         { w.do(Store, v, 0) }
func (w *word) swap(v uint64) uint64   { return w.do(Swap, v, 0) }
func (w *word) add(v uint64) uint64    { return w.do(Add, v, 0) }
func (w *word) cas(old, v uint64) bool { return w.do(CompareAndSwap, old, v) != 0 }
func (w *word) wait(seen uint64)       { Wait(uintptr(unsafe.Pointer(w)), (*uint64)(w), seen) }
func (w *word) wake()                  { Wake(uintptr(unsafe.Pointer(w)), 1<<30) }

func right(t *testing.T, o Options, setup func(*Exec)) Result {
	t.Helper()
	r := Check(o, setup)
	if r.Failure != "" {
		t.Errorf("failed: %v", r)
	}
	return r
}

func wrong(t *testing.T, o Options, want string, setup func(*Exec)) Result {
	t.Helper()
	r := Check(o, setup)
	if !strings.Contains(r.Failure, want) || r.Failure == "" {
		t.Errorf("want a failure with %q, got %v", want, r)
	}
	return r
}

func TestLostUpdateIsFound(t *testing.T) {
	count := func(step func(*word)) func(*Exec) {
		return func(x *Exec) {
			m := x.Memory(8)
			for range 2 {
				x.Go("adder", func(*Thread) { step(at0(m, 0)) })
			}
			x.Final(func(report func(string, ...any)) {
				if n := at0(m, 0).load(); n != 2 {
					report("counted %d", n)
				}
			})
		}
	}
	r := wrong(t, Options{}, "counted 1", count(func(w *word) { w.store(w.load() + 1) }))
	if len(r.Trace) != 4 || !strings.Contains(r.Trace[0], "adder") || !strings.Contains(r.Trace[3], "store word 0, 0x1") {
		t.Errorf("trace: %q", r.Trace)
	}
	right(t, Options{}, count(func(w *word) { w.add(1) }))
	right(t, Options{}, count(func(w *word) {
		for v := w.load(); !w.cas(v, v+1); v = w.load() {
		}
	}))
}

// Peterson's lock holds when memory is sequentially consistent, and does not
// when the two stores of its entry are exchanged.
func TestPeterson(t *testing.T) {
	lock := func(exchanged bool) func(*Exec) {
		return func(x *Exec) {
			m := x.Memory(64)
			x.Names(func(name func([]byte, string)) { name(m[16:], "turn") })
			for i := range 2 {
				x.Go(fmt.Sprint(i), func(t *Thread) {
					mine, other, turn, inside := at0(m, i), at0(m, 1-i), at0(m, 2), at0(m, 3)
					if exchanged {
						turn.store(uint64(1 - i))
						mine.store(1)
					} else {
						mine.store(1)
						turn.store(uint64(1 - i))
					}
					for {
						t.At("spin")
						if other.load() == 0 || turn.load() == uint64(i) {
							break
						}
					}
					if inside.swap(1) != 0 {
						t.Fail("both are inside")
					}
					inside.store(0)
					mine.store(0)
				})
			}
		}
	}
	right(t, Options{}, lock(false))
	r := wrong(t, Options{}, "both are inside", lock(true))
	if !strings.Contains(strings.Join(r.Trace, "\n"), "store turn, 0x1") {
		t.Errorf("trace without names: %q", r.Trace)
	}
}

// What x86 allows and what it does not: a load may overtake an earlier store of
// its thread, not a store another store, and nothing a fence.
func TestBufferedStores(t *testing.T) {
	both := func(write func(mine, own *word)) func(*Exec) {
		return func(x *Exec) {
			m := x.Memory(64)
			for i := range 2 {
				x.Go(fmt.Sprint(i), func(t *Thread) {
					write(at0(m, i), at0(m, 4+i))
					if at0(m, i).load() != 1 {
						t.Fail("its own store is not seen")
					}
					at0(m, 2+i).store(1 + at0(m, 1-i).load())
				})
			}
			x.Final(func(report func(string, ...any)) {
				if at0(m, 2).load() == 1 && at0(m, 3).load() == 1 {
					report("neither saw the other")
				}
			})
		}
	}
	stored, swapped := both(func(w, _ *word) { w.store(1) }), both(func(w, _ *word) { w.swap(1) })
	right(t, Options{}, stored)
	r := wrong(t, Options{Buffered: true}, "neither saw the other", stored)
	if !strings.Contains(strings.Join(r.Trace, "\n"), "its store word 0, 0x1 reaches memory") {
		t.Errorf("trace: %q", r.Trace)
	}
	right(t, Options{Buffered: true}, swapped)

	// A fence on a word that nobody else has is one, too.
	right(t, Options{Buffered: true}, both(func(w, own *word) { w.store(1); own.swap(0) }))

	right(t, Options{Buffered: true, Kills: 1}, func(x *Exec) {
		m := x.Memory(16)
		x.Go("sender", func(*Thread) { at0(m, 0).store(1); at0(m, 1).store(1) })
		x.Go("receiver", func(t *Thread) {
			if at0(m, 1).load() == 1 && at0(m, 0).load() != 1 {
				t.Fail("the second store came first")
			}
		}).Immune()
	})

	// A store of a thread that was killed still arrives.
	ends := map[uint64]bool{}
	right(t, Options{Buffered: true, Kills: 1}, func(x *Exec) {
		m := x.Memory(16)
		x.Go("victim", func(*Thread) { at0(m, 0).store(1); at0(m, 0).load() })
		x.Go("other", func(*Thread) { at0(m, 0).load() }).Immune()
		x.Final(func(func(string, ...any)) { ends[at0(m, 0).load()] = true })
	})
	if len(ends) != 2 {
		t.Errorf("memory in the end: %v", ends)
	}
}

// TestAlwaysSeesWhatPasses: a state in the middle of a schedule whose end is right.
func TestAlwaysSeesWhatPasses(t *testing.T) {
	r := wrong(t, Options{}, "both are 1", func(x *Exec) {
		m := x.Memory(16)
		for i := range 2 {
			x.Go(fmt.Sprint(i), func(*Thread) { at0(m, i).store(1); at0(m, 1-i).load(); at0(m, i).store(0) })
		}
		x.Always(func(report func(string, ...any)) {
			if at0(m, 0).load()+at0(m, 1).load() == 2 {
				report("both are 1")
			}
		})
	})
	if len(r.Trace) < 2 {
		t.Errorf("trace: %q", r.Trace)
	}
}

func TestLostWakeUpIsFound(t *testing.T) {
	flag := func(wait func(flag, bell *word)) func(*Exec) {
		return func(x *Exec) {
			m := x.Memory(16)
			flag, bell := at0(m, 0), at0(m, 1)
			x.Go("waiter", func(*Thread) { wait(flag, bell) })
			x.Go("ringer", func(*Thread) {
				flag.store(1)
				bell.add(1)
				bell.wake()
			})
		}
	}
	right(t, Options{}, flag(func(flag, bell *word) {
		for seen := bell.load(); flag.load() == 0; seen = bell.load() {
			bell.wait(seen)
		}
	}))
	late := flag(func(flag, bell *word) {
		for flag.load() == 0 {
			bell.wait(bell.load()) // the bell is read after the check
		}
	})
	wrong(t, Options{}, "waiter sleeps for ever, at: sleep on word 8", late)
	// A death that could still come is no excuse.
	wrong(t, Options{Kills: 1}, "waiter sleeps for ever", func(x *Exec) {
		late(x)
		x.threads[0].Immune()
		x.threads[1].Immune()
		x.Go("victim", func(t *Thread) { t.Await(func() bool { return false }) }).Daemon().immune = false
	})
}

func TestDeathAtEveryStep(t *testing.T) {
	lock := func(x *Exec) {
		m := x.Memory(8)
		for _, name := range []string{"a", "b"} {
			x.Go(name, func(t *Thread) {
				t.Await(func() bool { return at0(m, 0).load() == 0 })
				if at0(m, 0).cas(0, 1) {
					at0(m, 0).store(0)
				}
			})
		}
	}
	right(t, Options{}, lock)
	wrong(t, Options{Kills: 1}, "waits for ever, at: go on", lock)

	var ends []uint64
	right(t, Options{Kills: 1}, func(x *Exec) {
		m := x.Memory(8)
		x.Go("counter", func(*Thread) {
			defer at0(m, 0).store(9) // not done by who is killed
			for range 3 {
				at0(m, 0).add(1)
			}
		})
		x.Go("other", func(*Thread) { at0(m, 0).load() }).Immune()
		x.Final(func(func(string, ...any)) { ends = append(ends, at0(m, 0).load()) })
	})
	slices.Sort(ends)
	if ends = slices.Compact(ends); !slices.Equal(ends, []uint64{0, 1, 2, 3, 9}) {
		t.Errorf("a thread killed at every step leaves %v", ends)
	}
}

func TestAwaitDeath(t *testing.T) {
	seen := map[string]bool{}
	right(t, Options{Kills: 2}, func(x *Exec) {
		m := x.Memory(8)
		var threads []*Thread
		for range 2 {
			threads = append(threads, x.Go("victim", func(*Thread) { at0(m, 0).add(1) }))
		}
		x.Go("kernel", func(t *Thread) {
			var known []int
			for t.AwaitDeath(threads, &known) >= 0 {
			}
			seen[fmt.Sprint(known)] = true
		}).Immune()
	})
	if want := map[string]bool{"[]": true, "[0]": true, "[1]": true, "[0 1]": true, "[1 0]": true}; !maps.Equal(seen, want) {
		t.Errorf("deaths seen: %v", seen)
	}
}

func TestChoose(t *testing.T) {
	seen := map[string]bool{}
	right(t, Options{}, func(x *Exec) {
		x.Go("chooser", func(t *Thread) { seen[fmt.Sprint(t.Choose(2), t.Choose(3))] = true })
	})
	if len(seen) != 6 {
		t.Errorf("chosen: %v", seen)
	}
}

// Words that nobody shares cost no turns.
func TestOwnWordsAreNotScheduled(t *testing.T) {
	r := right(t, Options{}, func(x *Exec) {
		m := x.Memory(24)
		at0(m, 2).store(7)
		for i := range 2 {
			x.Go("thread", func(t *Thread) {
				for range 10 {
					at0(m, i).add(1)
				}
				if at0(m, 2).load() != 7 {
					t.Fail("what setup stored is gone")
				}
			})
		}
	})
	if r.Executions != 1 || r.Shared != 0 {
		t.Errorf("two threads on words of their own: %v", r)
	}
}

// Where nothing changes, the search ends.
func TestPollingIsFinite(t *testing.T) {
	r := right(t, Options{}, func(x *Exec) {
		m := x.Memory(8)
		x.Go("poller", func(t *Thread) {
			for n := 0; at0(m, 0).load() == 0; n++ {
				t.At("poll")
			}
		})
		x.Go("setter", func(*Thread) { at0(m, 0).store(1) })
	})
	if r.States > 10 {
		t.Errorf("polling one word: %v", r)
	}
}

func TestPanicIsAFailure(t *testing.T) {
	wrong(t, Options{}, "bad panicked: runtime error: index out of range", func(x *Exec) {
		x.Go("bad", func(*Thread) {
			var none []int
			none[len(none)]++
		})
	})
}

// A thread that reads 1 and then 2 has stopped who writes them, and was stopped.
func TestPreemptions(t *testing.T) {
	seen := func(x *Exec) {
		m := x.Memory(8)
		x.Go("writer", func(*Thread) { at0(m, 0).store(1); at0(m, 0).store(2) })
		x.Go("reader", func(t *Thread) {
			if at0(m, 0).load() == 1 && at0(m, 0).load() == 2 {
				t.Fail("both are seen")
			}
		})
	}
	right(t, Options{Preemptions: 1}, seen)
	wrong(t, Options{Preemptions: 2}, "both are seen", seen)
	wrong(t, Options{}, "both are seen", seen)
	right(t, Options{Preemptions: -1}, func(x *Exec) {
		m := x.Memory(8)
		for range 2 {
			x.Go("counter", func(t *Thread) {
				if at := at0(m, 0).load(); at+1 != at0(m, 0).add(1) {
					t.Fail("it was stopped")
				}
			})
		}
	})
	// Who waits, or has come to its end, is not stopped by who goes on.
	wrong(t, Options{Preemptions: 1}, "everybody has been here", func(x *Exec) {
		m := x.Memory(8)
		for i := range uint64(3) {
			x.Go(fmt.Sprint(i), func(t *Thread) {
				t.Await(func() bool { return at0(m, 0).load() == i })
				if at0(m, 0).store(i + 1); i == 2 {
					t.Fail("everybody has been here")
				}
			})
		}
	})
}

// A case may begin with a schedule, and with a death at its end.
func TestOpen(t *testing.T) {
	begins := func(opens bool) func(x *Exec) {
		return func(x *Exec) {
			m := x.Memory(8)
			var doomed *Thread
			x.Go("late", func(t *Thread) {
				if at0(m, 0).load() != 2 || !doomed.Dead() {
					t.Fail("it has come before the others")
				}
			}).Immune()
			then := x.Go("then", func(*Thread) { at0(m, 0).add(1) }).Immune()
			doomed = x.Go("doomed", func(t *Thread) {
				at0(m, 0).store(1)
				t.Await(func() bool { return at0(m, 0).load() == 3 })
			})
			if doomed.Doomed(); opens {
				x.Open(doomed, then)
			}
		}
	}
	right(t, Options{Kills: 1}, begins(true))
	wrong(t, Options{Kills: 1}, "it has come before the others", begins(false))
}

func TestLimit(t *testing.T) {
	r := Check(Options{Limit: 5}, func(x *Exec) {
		m := x.Memory(8)
		for range 3 {
			x.Go("adder", func(*Thread) { at0(m, 0).add(1); at0(m, 0).add(1) })
		}
	})
	if !r.GivenUp || r.States != 5 {
		t.Errorf("a search limited to 5 states: %v", r)
	}
}

// program is what threads do in TestAgainstBruteForce: op, word and operand.
type program [][]step

type step struct {
	op   Op
	word int
	v    uint64
}

// run is the meaning of a step; a thread adds what it reads to what it writes.
func (s step) run(acc *uint64, do func(op Op, word int, a, b uint64) uint64) {
	*acc += do(s.op, s.word, s.v+*acc%3, s.v) % 5
}

// ends are the final contents of memory over all interleavings, found by trying
// them one by one without any of this package's means.
func (p program) ends(words int) map[string]bool {
	all := map[string]bool{}
	var try func(pcs []int, accs, mem []uint64)
	try = func(pcs []int, accs, mem []uint64) {
		over := true
		for i := range p {
			if pcs[i] == len(p[i]) {
				continue
			}
			over = false
			pcs, accs, mem := slices.Clone(pcs), slices.Clone(accs), slices.Clone(mem)
			p[i][pcs[i]].run(&accs[i], func(op Op, w int, a, b uint64) uint64 { return apply(&mem[w], op, a, b) })
			pcs[i]++
			try(pcs, accs, mem)
		}
		if over {
			all[fmt.Sprint(mem)] = true
		}
	}
	try(make([]int, len(p)), make([]uint64, len(p)), make([]uint64, words))
	return all
}

// Random small programs end in the same ways here as under brute force.
func TestAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	ops := []Op{Load, Store, Swap, Add, Or, And, CompareAndSwap}
	for range 300 {
		const words = 3
		p := make(program, 2+r.IntN(2))
		for i := range p {
			for range 1 + r.IntN(4) {
				p[i] = append(p[i], step{ops[r.IntN(len(ops))], r.IntN(words), r.Uint64N(3)})
			}
		}
		got := map[string]bool{}
		right(t, Options{}, func(x *Exec) {
			m := x.Memory(8 * words)
			for _, steps := range p {
				x.Go("thread", func(t *Thread) {
					var acc uint64
					for _, s := range steps {
						s.run(&acc, func(op Op, w int, a, b uint64) uint64 { return at0(m, w).do(op, a, b) })
					}
				})
			}
			x.Final(func(func(string, ...any)) {
				var mem []uint64
				for w := range words {
					mem = append(mem, at0(m, w).load())
				}
				got[fmt.Sprint(mem)] = true
			})
		})
		if want := p.ends(words); len(want) != len(got) {
			t.Fatalf("%v ends in %v, by brute force in %v", p, got, want)
		}
	}
}

// State is taken apart down to unexported numbers; shared memory is only a place.
func TestDeep(t *testing.T) {
	type inner struct{ a, b int }
	type outer struct {
		n    int
		p    *inner
		list []inner
		m    map[string]int
		f    func()
		mem  []byte
	}
	x := claim()
	defer x.release()
	m := x.Memory(16)
	make1 := func() *outer {
		return &outer{1, &inner{2, 3}, []inner{{4, 5}}, map[string]int{"x": 6, "y": 7}, func() {}, m[:8]}
	}
	same := x.deep(make1())
	if again := x.deep(make1()); again != same {
		t.Error("equal states differ")
	}
	m[0] = 9
	if x.deep(make1()) != same {
		t.Error("the contents of shared memory count")
	}
	for i, change := range []func(*outer){
		func(o *outer) { o.n++ }, func(o *outer) { o.p.b++ }, func(o *outer) { o.list[0].a++ },
		func(o *outer) { o.m["x"]++ }, func(o *outer) { o.list = nil }, func(o *outer) { o.p = nil },
		func(o *outer) { o.mem = m[8:] },
	} {
		o := make1()
		change(o)
		if x.deep(o) == same {
			t.Errorf("change %d is not seen", i)
		}
	}
	o := make1()
	o.n++
	if x.deep(Ignore{o, []string{"n"}}) != x.deep(Ignore{make1(), []string{"n"}}) {
		t.Error("an ignored field counts")
	}
}

func TestSearchesInParallel(t *testing.T) {
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			right(t, Options{}, func(x *Exec) {
				m := x.Memory(8)
				for range 3 {
					x.Go("adder", func(*Thread) { at0(m, 0).add(1); at0(m, 0).add(1) })
				}
				x.Final(func(report func(string, ...any)) {
					if n := at0(m, 0).load(); n != 6 {
						report("counted %d", n)
					}
				})
			})
		})
	}
}
