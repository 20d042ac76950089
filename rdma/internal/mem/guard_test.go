package mem

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestGuardWaitsForThoseInside(t *testing.T) {
	for range 200 {
		var g Guard
		var gone atomic.Bool // stands for the mapping
		var all sync.WaitGroup
		started := make(chan struct{}, 4)
		for range 4 {
			all.Go(func() {
				started <- struct{}{}
				for g.Enter() {
					if gone.Load() {
						t.Error("inside after Close returned")
					}
					if nested := g.Enter(); nested {
						g.Exit()
					}
					g.Exit()
				}
			})
		}
		<-started
		if !g.Close(nil) {
			t.Error("the first Close was not the first")
		}
		gone.Store(true)
		all.Wait()
		if g.Close(nil) || !g.Closed() || g.Enter() {
			t.Error("a closed guard let somebody in")
		}
	}
}

func TestGuardHurriesLongStays(t *testing.T) {
	var g Guard
	if !g.Enter() {
		t.Fatal("not let in")
	}
	leave := make(chan struct{})
	go func() {
		<-leave
		g.Exit()
	}()
	g.Close(func() { close(leave) })
}
