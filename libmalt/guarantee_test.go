package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"malt/libmalt"
)

// TestG1WorldOfOneChangesNothing: every mode and fold leaves the values as they
// are, bit for bit.
func TestG1WorldOfOneChangesNothing(t *testing.T) {
	job(t, 1, func(ctx context.Context, w *libmalt.World) error {
		for _, mode := range []string{"bsp", "async", "ssp:3", "notify-ack:2"} {
			for _, fold := range []string{"mean", "mean-received", "sum", "min", "max", "replace"} {
				v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float64, Count: 3}}, "", "consistency="+mode+" fold="+fold)
				if err != nil {
					return err
				}
				for i := range 3 {
					binary.LittleEndian.PutUint64(v.Bytes()[8*i:], math.Float64bits(math.Sqrt(float64(i+2))))
				}
				before := bytes.Clone(v.Bytes())
				for range 5 {
					if k, err := v.Sync(ctx, 0.5); err != nil || k != 0 {
						return fmt.Errorf("%s %s: folded %d, %v", mode, fold, k, err)
					}
				}
				if err := v.AllReduce(ctx, "mean"); err != nil {
					return err
				}
				if !bytes.Equal(before, v.Bytes()) {
					return fmt.Errorf("%s %s changed the values", mode, fold)
				}
				if err := v.Close(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
