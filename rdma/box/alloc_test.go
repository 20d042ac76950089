package box

import (
	"fmt"
	"testing"

	"malt/rdma"
)

var modes = map[string]rdma.Spec{
	"newest":    {Bytes: 64},
	"lock-step": {Bytes: 64, Mode: rdma.ByClock},
	"queue":     {Bytes: 64, Mode: rdma.Queue(2)},
}

// step is one update from Begin to Release, to all or to one.
func (r *rig) step(clock uint64, to []int) {
	if _, err := r.out.Begin(); err != nil {
		r.Fatal(err)
	}
	if err := r.out.Commit(8, rdma.Stamp{Clock: clock}, to); err != nil {
		r.Fatal(err)
	}
	for _, in := range r.in {
		var u rdma.Update
		var err error
		if r.layout.Spec.Mode == rdma.ByClock {
			u, _, err = in.At(clock)
		} else {
			u, _, err = in.Next()
		}
		if _, state := in.Clock(); err != nil || state != nil {
			r.Fatal(err, state)
		}
		in.Release(u.Seq)
	}
}

func TestNoAllocation(t *testing.T) {
	for name, spec := range modes {
		r := newRig(t, spec, 3)
		r.quiet = true
		clock := uint64(0)
		for _, to := range [][]int{nil, {2}, {}, {1, 3, 1}} {
			if n := testing.AllocsPerRun(100, func() { clock++; r.step(clock, to) }); n != 0 {
				t.Errorf("%s to %v: %v allocations per update", name, to, n)
			}
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, name := range []string{"newest", "lock-step", "queue"} {
		for _, k := range []int{1, 3, 7, 63} {
			b.Run(fmt.Sprintf("%s/readers=%d", name, k), func(b *testing.B) {
				r := newRig(b, modes[name], k)
				r.quiet = true
				b.ReportAllocs()
				clock := uint64(0)
				for b.Loop() {
					clock++
					r.step(clock, nil)
				}
			})
		}
	}
}
