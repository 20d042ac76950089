package box

import (
	"testing"

	"malt/rdma"
)

// wantNone is Next of reader number i that must give update seq, which is not for it.
func (r *rig) wantNone(i int, seq uint64) {
	r.Helper()
	u, ok, err := r.in[i].Next()
	if err != nil || !ok || u.Seq != seq || u.Data != nil {
		r.Fatalf("reader %d: %+v, ok %v, error %v; expected update %d, without data", i, u, ok, err, seq)
	}
}

func (r *rig) wantServed(generation uint64, to []int, want int) {
	r.Helper()
	if got := r.out.Serve(generation, to); got != want {
		r.Fatalf("in view %d, %d of %v are served, want %d", generation, got, to, want)
	}
}

var nobody = []int{}

func TestEdges(t *testing.T) {
	one := []int{1}
	for name, test := range map[string]func(r *rig){
		"not before the reader has begun": func(r *rig) {
			r.wantServed(1, nobody, 0)
			r.wantServed(2, one, 0)
			r.send(1, 1)
			r.send(2, 1) // nobody is waited for
			r.in[0].Begin(2)
			r.wantServed(2, one, 1)
			r.send(3, 1)
			r.wantNone(0, 1)
			r.wantNone(0, 2)
			r.want(0, 3)
		},
		"not what the reader has passed": func(r *rig) {
			r.wantServed(1, nobody, 0)
			r.wantServed(2, one, 0)
			r.in[0].Pass(false)
			r.in[0].Pass(true) // it is not there
			r.in[0].Begin(2)
			r.wantServed(2, one, 0)
			r.send(1, 1)
			r.wantServed(2, one, 1)
			r.send(2, 1)
			r.want(0, 2)
		},
		"from the first update on": func(r *rig) {
			r.wantServed(1, one, 1)
			r.send(1, 1)
			r.in[0].Begin(1)
			r.want(0, 1)
		},
		"an end": func(r *rig) {
			r.wantServed(1, nobody, 0)
			r.in[0].Begin(2)
			r.wantServed(2, one, 1)
			r.send(1, 1)
			r.takeRings()
			r.wantServed(3, nobody, 0)
			if rings := r.takeRings(); rings != "[2]" {
				r.Errorf("bells %s, want that of the reader", rings)
			}
			if r.in[0].Over(3) {
				r.Error("over before all was had")
			}
			if b, err := r.out.Begin(); b != nil || err != nil {
				r.Errorf("a slot that the reader has not released: %v, %v", b, err)
			}
			r.in[0].Release(r.want(0, 1).Seq)
			if r.in[0].Over(4) || !r.in[0].Over(3) {
				r.Error("over in the sender's view alone")
			}
			r.send(2, nobody...)
			r.send(3, nobody...)
			if acked := r.out.Acked(1); acked != released {
				r.Errorf("acked %d: there is nothing to wait for", acked)
			}
		},
		"one of which nothing was sent": func(r *rig) {
			r.in[0].Begin(1)
			r.wantServed(1, one, 1)
			r.send(1, 1)
			r.in[0].Release(r.want(0, 1).Seq)
			r.wantServed(2, nobody, 0)
			r.send(2, nobody...)
			r.send(3, nobody...)
			r.in[0].Begin(3)
			r.wantServed(3, one, 1)
			r.wantServed(4, nobody, 0)
			r.wantNone(0, 2)
		},
		"a level": func(r *rig) {
			r.wantServed(1, nobody, 0)
			r.wantServed(2, one, 0)
			for range 5 {
				r.in[0].Pass(false)
			}
			r.send(1, 1)
			r.in[0].Level(1)
			r.in[0].Begin(2)
			r.wantServed(2, one, 1)
			r.send(2, 1)
			r.want(0, 2)
			r.in[0].Level(released)
			r.send(3, 1) // all that there was is released
			r.want(0, 3)
		},
		"without": func(r *rig) { // all are served
			r.send(1, 1)
			r.want(0, 1)
			if b, err := r.out.Begin(); b != nil || err != nil {
				r.Errorf("a slot that the reader has not released: %v, %v", b, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { test(newRig(t, rdma.Spec{Bytes: 1, Mode: rdma.Queue(1)}, 1)) })
	}
}

// What a dead reader was reading is free.
func TestForget(t *testing.T) {
	for name, mode := range map[string]rdma.Mode{"newest": rdma.Newest, "lock-step": rdma.ByClock, "queue": rdma.Queue(1)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rdma.Spec{Bytes: 1, Mode: mode}, 2)
			r.send(1, 1, 2)
			for i := range r.in {
				u := r.want(i, 1)
				if i == 1 {
					r.in[i].Release(u.Seq)
				}
			}
			r.out.Forget(1)
			for clock := uint64(2); clock < 20; clock++ {
				r.send(clock, 2)
				r.in[1].Release(r.want(1, clock).Seq)
			}
			if want := map[rdma.Mode]int{rdma.Newest: 2, rdma.ByClock: 3, rdma.Queue(1): 1}[mode]; len(r.reserved) != want {
				t.Errorf("slots %v are in use, want %d", r.reserved, want)
			}
		})
	}
}
