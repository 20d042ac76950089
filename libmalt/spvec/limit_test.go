package spvec

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"malt/libmalt/reduce"
)

// BenchmarkLimit is the way of a message, from the names of its rows to a mean at
// the receiver, beside the least that any way must do: read each row in the
// sender's array, write it to the copy of what was sent and with its index to the
// message, and write it in the receiver's array. found: rows are looked for,
// which reads all of array and copy. One goroutine does both in turns, so that
// ratios hold on a busy machine; the quickest turn counts.
func BenchmarkLimit(b *testing.B) {
	for _, n := range []int{1 << 20, 10_000_000} {
		for _, width := range []int{1, 4, 16} {
			for _, share := range []float64{0.001, 0.01, 0.1} {
				for _, found := range []bool{false, true} {
					b.Run(fmt.Sprintf("n=%d/width=%d/density=%v/found=%t", n, width, share, found), func(b *testing.B) {
						benchmarkLimit(b, Shape{Rows: n / width, Width: width, Elem: 4}, share, found)
					})
				}
			}
		}
	}
}

func benchmarkLimit(b *testing.B, s Shape, share float64, found bool) {
	rows := some(rand.New(rand.NewPCG(1, 1)), s, share)
	data, base, slot, own := zeroed(s.Bytes()), zeroed(s.Bytes()), zeroed(s.MaxBytes()), zeroed(s.Bytes())
	for _, memory := range [][]byte{data, base, slot, own} {
		memory[0] = 1
		for i := range memory {
			memory[i] = 0 // pages of its own, not the kernel's one of zeros
		}
	}
	change := func(x float32) {
		v := view[float32](data)
		for _, r := range rows {
			for e := range s.Width {
				v[int(r)*s.Width+e] = x
			}
		}
	}
	masks := make([]uint64, reduce.Masks(s.Bytes()))
	var list []uint32
	var u Update
	us, f := make([]Update, 1), Folder{}
	malt := func() {
		named := rows
		if found {
			list = Changed(list[:0], s, data, base)
			named = list
		}
		n, kind := EncodeNew(slot, s, data, base, named)
		if err := u.Decode(kind, slot[:n], s, 1, 0); err != nil {
			b.Fatal(err)
		}
		us[0] = u
		f.Fold(Mean, Keep, s, own, 1, 1, us)
	}
	limit := func() {
		if found {
			reduce.Differ(masks, data, base)
		}
		switch s.Width {
		case 1:
			touch[uint32](slot, base, own, data, rows)
		case 4:
			touch[[2]uint64](slot, base, own, data, rows)
		default:
			touch[[8]uint64](slot, base, own, data, rows)
		}
	}
	took := map[bool]time.Duration{}
	turn := 0
	for b.Loop() {
		for _, own := range []bool{true, false} {
			turn++
			change(float32(turn))
			start := time.Now()
			if own {
				malt()
			} else {
				limit()
			}
			if t := time.Since(start); took[own] == 0 || t < took[own] {
				took[own] = t
			}
		}
	}
	per := float64(len(rows))
	b.ReportMetric(float64(took[true].Nanoseconds())/per, "ns/row")
	b.ReportMetric(float64(took[false].Nanoseconds())/per, "limit-ns/row")
	b.ReportMetric(float64(took[true])/float64(took[false]), "times-limit")
	b.ReportMetric(0, "ns/op")
}

// touch moves rows without combining them.
func touch[T short](slot, base, own, data []byte, rows []uint32) {
	index, values := view[uint32](slot[:4*len(rows)]), view[T](slot[roundUp(4*len(rows)):])
	from, sent, to := view[T](data), view[T](base), view[T](own)
	for i, r := range rows {
		x := from[r]
		index[i], values[i], sent[r] = r, x, x
	}
	for i, r := range index {
		to[r] = values[i]
	}
}
