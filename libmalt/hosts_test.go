package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"malt/libmalt"
	"malt/libmalt/reduce"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// layouts are the hosts of each rank: one rank each, several, unequal numbers, and
// ranks dealt out in turns.
var layouts = [][]int{
	{0, 1}, {0, 1, 2}, {0, 1, 2, 3}, {0, 0, 1}, {0, 1, 1, 1}, {0, 0, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 2, 2}, {0, 1, 0, 1, 2},
}

// inOrder folds all ranks' arrays as reduce/subtotal.go says, element by element, in the
// plainest way there is.
func inOrder(op reduce.Op, dt libmalt.DType, host []int, values [][]byte, weights []float64) []byte {
	one := func(fold reduce.Op, srcs [][]byte, weights []float64) []byte {
		dst := make([]byte, len(values[0]))
		reduce.Fold(fold, dt, dst, srcs, weights)
		return dst
	}
	if op != reduce.Mean {
		weights = nil
	}
	takes := func(r int) bool { return weights == nil || weights[r] > 0 }
	weight := func(r int) float64 {
		if weights == nil {
			return 1
		}
		return weights[r]
	}
	var sums, means [][]byte
	var totals []float64
	n, same, first := 0, true, -1.0
	for h := range values {
		var srcs [][]byte
		var ws []float64
		total, alike := 0.0, true
		for r := range values {
			if host[r] == h && takes(r) {
				srcs, ws = append(srcs, values[r]), append(ws, weight(r))
				total += weight(r)
				alike = alike && weight(r) == ws[0]
				if first < 0 {
					first = weight(r)
				}
				same = same && weight(r) == first
			}
		}
		if len(srcs) == 0 {
			continue
		}
		n += len(srcs)
		fold := op
		if op == reduce.Mean {
			fold = reduce.Sum
		}
		sums = append(sums, one(fold, srcs, nil))
		if alike {
			mean := make([]byte, len(values[0]))
			reduce.FoldSums(dt, mean, sums[len(sums)-1:], len(srcs))
			means, totals = append(means, mean), append(totals, ws[0]*float64(len(srcs)))
		} else {
			means, totals = append(means, one(reduce.Mean, srcs, ws)), append(totals, total)
		}
	}
	switch {
	case n == 0:
		return nil
	case op != reduce.Mean:
		return one(op, sums, nil)
	case same:
		dst := make([]byte, len(values[0]))
		reduce.FoldSums(dt, dst, sums, n)
		return dst
	}
	return one(reduce.Mean, means, totals)
}

// TestOrderOfHosts: Sync and Scatter with Gather give, on ranks of several hosts, the
// sum of the hosts' sums: bit for bit, on every rank.
func TestOrderOfHosts(t *testing.T) {
	weights := []func(rank int) float64{
		func(int) float64 { return 1 },
		func(rank int) float64 { return float64(rank % 3) },
		func(int) float64 { return 0 },
		func(rank int) float64 { return 1 / float64(3+rank) },
		func(rank int) float64 { return float64(rank%2) * 0.3 },
	}
	for i, host := range layouts {
		if testing.Short() && i%2 == 0 {
			continue
		}
		t.Run(fmt.Sprint(host), func(t *testing.T) {
			type round struct {
				values [][]byte
				weight []float64
				want   []byte // nil: all keep what they have
			}
			type set struct {
				count  int
				dt     libmalt.DType
				op     reduce.Op
				rounds []round
			}
			var sets []set
			for _, dt := range []libmalt.DType{libmalt.Float32, libmalt.Float64} {
				for _, count := range []int{0, 1, 15, 16, 17, 130, 262_152 / dt.Size()} { // the last is exchanged
					for _, op := range []reduce.Op{reduce.Mean, reduce.Sum, reduce.Min, reduce.Max} {
						s := set{count: count, dt: dt, op: op}
						for i, weight := range weights {
							if count > 130 && i > 0 && op != reduce.Mean {
								continue
							}
							r := round{weight: make([]float64, len(host))}
							for rank := range host {
								r.values = append(r.values, someValues(dt, count, rank, i))
								r.weight[rank] = weight(rank)
							}
							r.want = inOrder(op, dt, host, r.values, r.weight)
							s.rounds = append(s.rounds, r)
						}
						sets = append(sets, s)
					}
				}
			}
			check(t, run(background(t), inmem.NewHosts(host...), func(ctx context.Context, w *libmalt.World) error {
				for _, s := range sets {
					v, err := w.NewVector(ctx, []libmalt.Array{{DType: s.dt, Count: s.count}}, "", "start=own fold="+s.op.String())
					if err != nil {
						return err
					}
					for i, r := range s.rounds {
						want := r.want
						if want == nil {
							want = r.values[w.Rank()]
						}
						copy(v.Bytes(), r.values[w.Rank()])
						if i != 1 {
							_, err = v.Sync(ctx, r.weight[w.Rank()])
						} else if _, err = v.Scatter(ctx, nil, r.weight[w.Rank()]); err == nil {
							_, err = v.Gather(ctx, "")
						}
						if err != nil {
							return err
						}
						if !bytes.Equal(v.Bytes(), want) {
							return fmt.Errorf("%s of %d %v, weights %d: other bits", s.op, s.count, s.dt, i)
						}
					}
					if err := v.Close(); err != nil {
						return err
					}
				}
				return nil
			}))
		})
	}
}

// someValues are numbers of all magnitudes, those of a rank at a clock.
func someValues(dt libmalt.DType, count, rank, clock int) []byte {
	source := rand.NewPCG(uint64(rank), uint64(clock))
	b := []byte{}
	for range count {
		bits := source.Uint64()
		x := math.Float64frombits(bits&^(0x7ff<<52) | (1003+bits>>52%40)<<52)
		if dt == libmalt.Float32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b
}

// otherHost is a transport that tells another lowest rank of its host than is so.
type otherHost struct {
	rdma.Transport
	near []int
}

func (o *otherHost) Near() []int { return o.near }

// TestHostsMustAgree: ranks that do not agree on who shares memory would not add up
// alike.
func TestHostsMustAgree(t *testing.T) {
	for _, near := range [][]int{{0}, {1, 2}} {
		ts := inmem.NewHosts(0, 0, 1)
		ts[1] = &otherHost{ts[1], near}
		for r, err := range run(background(t), ts, func(context.Context, *libmalt.World) error { return nil }) {
			if r == 1 && !errors.Is(err, libmalt.ErrMismatch) && !errors.Is(err, rdma.ErrCorrupt) {
				t.Errorf("near %v: %v; expected that the ranks disagree", near, err)
			}
		}
	}
}
