package libmalt_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"malt/libmalt"
)

// memory is how many mappings of MALT's memory this process has, and of how many bytes.
func memory() (mappings, bytes int, err error) {
	maps, err := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		var from, to int
		if strings.Contains(line, "/memfd:malt-") {
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				return 0, 0, err
			}
			mappings++
			bytes += to - from
		}
	}
	return mappings, bytes, err
}

// TestVectorsTakeFewMappings: one of each other rank, and some of its own; nothing is mapped
// of the boxes that syncs do not use.
func TestVectorsTakeFewMappings(t *testing.T) {
	const ranks, values, most, mostBytes = 16, 1 << 18, 20, 40_000_000 // of each rank, for a vector of 1 MiB
	check(t, run(background(t), shared(t, ranks), func(ctx context.Context, w *libmalt.World) error {
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		mappings, bytes, err := memory()
		if err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		v, err := vector(ctx, w, values, "")
		if err != nil {
			return err
		}
		for clock := range 2 { // made, and synced
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			m, b, err := memory()
			if err != nil {
				return err
			}
			if m, b = (m-mappings)/ranks, (b-bytes)/ranks; m > most || b > mostBytes {
				return fmt.Errorf("after %d syncs a rank has %d mappings of %d bytes for the vector; at most %d of %d", clock, m, b, most, mostBytes)
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
		}
		return w.Barrier(ctx)
	}))
}
