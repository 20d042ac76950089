package processes

import (
	"context"
	"fmt"

	"malt/libmalt"
)

// noise is a second vector, in async, that ranks use in between whenever they
// like: it rings the same bells and is levelled by the same collective calls.
type noise struct {
	v    *libmalt.Vector
	last []uint64 // by sender: clock of the newest update taken
}

func (x *runner) makeNoise() error {
	x.noise = &noise{last: make([]uint64, x.plan.ranks)}
	return x.together("making of a second vector", func(ctx context.Context) (err error) {
		x.noise.v, err = x.w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 700}}, "noise", "consistency=async")
		return err
	})
}

// use scatters and gathers, which never waits.
func (n *noise) use(me int) error {
	ctx := context.Background()
	fill(n.v.Bytes(), 4, value(me, n.v.Clock()+1))
	if _, err := n.v.Scatter(ctx, nil, 1); err != nil {
		return err
	}
	us, err := n.v.Begin(ctx)
	if err != nil {
		return err
	}
	for _, u := range us {
		if err := checkPayload(u, func(b []byte) (float64, bool, error) { return constant(b, 4) }); err != nil {
			return err
		}
		if u.Clock <= n.last[u.Rank] {
			return fmt.Errorf("G2: clock %d of rank %d folded after clock %d", u.Clock, u.Rank, n.last[u.Rank])
		}
		n.last[u.Rank] = u.Clock
	}
	return n.v.End(true)
}
