package main

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

func TestHandlesLiveOnce(t *testing.T) {
	var tab table
	a := tab.add(kindVector, "a")
	if o, err := tab.get(a, kindVector); err != nil || o != "a" {
		t.Fatalf("get = %v, %v", o, err)
	}
	if !tab.remove(a) || tab.remove(a) {
		t.Fatal("remove succeeds once")
	}
	b := tab.add(kindVector, "b")
	if uint32(a) != uint32(b) {
		t.Fatalf("slot %d is not used again: got %d", uint32(a), uint32(b))
	}
	if _, err := tab.get(a, kindVector); err == nil {
		t.Error("a stale handle leads to the next object in its slot")
	}
	if o, err := tab.get(b, kindVector); err != nil || o != "b" {
		t.Errorf("get = %v, %v", o, err)
	}
}

func TestHandleErrorsSayWhy(t *testing.T) {
	var tab table
	if _, err := tab.get(1<<kindShift, kindVector); err == nil {
		t.Error("an empty table has a handle")
	}
	s := tab.add(kindSegment, "s")
	closed := tab.add(kindVector, "v")
	tab.remove(closed)
	for _, c := range []struct {
		handle uint64
		want   string
	}{
		{0, "null handle: expected a vector"},
		{s, "is of a segment: expected a vector"},
		{closed, "closed"},
		{7, "is not a handle"},
		{200 << kindShift, "is not a handle"},
		{1<<kindShift | 1<<31, "closed"},
	} {
		if _, err := tab.get(c.handle, kindVector); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("get(%#x): %v, want %q", c.handle, err, c.want)
		}
	}
}

// TestSlotRetires: a slot whose reuse count is used up is not used again, as its
// next handle would be its first.
func TestSlotRetires(t *testing.T) {
	var tab table
	h := tab.add(kindVector, "first")
	(*tab.slots.Load())[uint32(h)].reuse = maxReuse
	tab.remove(h)
	if h = tab.add(kindVector, "last"); uint32(h) == 0 {
		t.Fatal("a retired slot was used again")
	}
}

// TestHandlesAgainstMap compares the table with the plain map that it replaces.
func TestHandlesAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var tab table
	live, dead := map[uint64]int{}, []uint64{0}
	for i := range 20000 {
		if n := len(live); n == 0 || rng.IntN(100) < 50+20*(100-n)/100 {
			h := tab.add(kindVector+kind(i%3), i)
			if _, twice := live[h]; twice {
				t.Fatalf("handle %#x was given out twice", h)
			}
			live[h] = i
		} else {
			for h := range live {
				if !tab.remove(h) {
					t.Fatalf("remove(%#x) of a live handle failed", h)
				}
				delete(live, h)
				dead = append(dead, h)
				break
			}
		}
		h := dead[rng.IntN(len(dead))]
		if _, err := tab.get(h, kind(h>>kindShift)); err == nil {
			t.Fatalf("stale handle %#x is accepted", h)
		}
	}
	seen := 0
	tab.each(func(h uint64, o any) {
		seen++
		if live[h] != o {
			t.Errorf("handle %#x: %v, want %v", h, o, live[h])
		}
	})
	if seen != len(live) {
		t.Errorf("each visits %d handles of %d", seen, len(live))
	}
}

// TestHandlesConcurrently has the race detector watch readers beside writers. An
// object is its own handle's slot, so a mix-up shows.
func TestHandlesConcurrently(t *testing.T) {
	var tab table
	var all sync.WaitGroup
	handles := make(chan uint64, 1024)
	for range 4 {
		all.Go(func() {
			for range 5000 {
				o := new(uint64)
				h := tab.add(kindGraph, o)
				*o = h // before anybody else can know h
				select {
				case handles <- h:
				default:
				}
				if got, err := tab.get(h, kindGraph); err != nil || got != o {
					t.Errorf("get(%#x) = %v, %v", h, got, err)
				}
				if !tab.remove(h) {
					t.Errorf("remove(%#x) failed", h)
				}
			}
		})
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case h := <-handles:
					if o, err := tab.get(h, kindGraph); err == nil && *o.(*uint64) != h {
						t.Errorf("handle %#x leads to the object of %#x", h, *o.(*uint64))
					}
				case <-done:
					return
				}
			}
		})
	}
	all.Wait()
	close(done)
	readers.Wait()
}

func BenchmarkHandle(b *testing.B) {
	var tab table
	var handles [64]uint64
	for i := range handles {
		handles[i] = tab.add(kindVector, new(object))
	}
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := tab.get(handles[i%len(handles)], kindVector); err != nil {
				b.Fatal(err)
			}
		}
	})
}
