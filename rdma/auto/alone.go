package auto

import (
	"context"
	"fmt"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/remote"
	"malt/rdma/wire"
)

// alone is the transport of a job of one rank: it has no peers, and nobody is left if it dies.
type alone struct {
	*remote.Transport
	view rdma.View
}

var _ rdma.Viewed = (*alone)(nil)

// openAlone is named as where its memory is.
func openAlone(ctx context.Context, c Config) (rdma.Transport, error) {
	if c.Size != 1 || c.Rank != 0 {
		return nil, say.Errorf(rdma.ErrConfig, "transport inmem connects ranks of one process only; this is rank %d of %d", c.Rank, c.Size).Try("Use shm or auto.")
	}
	t, err := remote.Open(ctx, remote.Config{Size: 1, Generation: 1}, nowhere{})
	if err != nil {
		return nil, err
	}
	return &alone{t, rdma.Everyone(1)}, nil
}

func (*alone) Survive(int)                         {}
func (a *alone) View() rdma.View                   { return a.view }
func (*alone) Out() error                          { return nil }
func (*alone) Stuck() (error, bool)                { return nil, false }
func (*alone) Confirm(context.Context) rdma.Answer { return rdma.Known }

func (*alone) Expel(rank int) error {
	return fmt.Errorf("rank %d is this process: %w", rank, rdma.ErrNotSupported)
}

// nowhere is the network of a rank without peers, of which only this is asked.
type nowhere struct{ wire.Wire }

func (nowhere) Name() string           { return "inmem" }
func (nowhere) Listen(wire.Host) error { return nil }
func (nowhere) Settled()               {}
func (nowhere) Close()                 {}
