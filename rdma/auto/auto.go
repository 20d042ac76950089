// Package auto opens transports by name and picks the best one. It is the only
// place that knows all of them.
package auto

import (
	"context"
	"fmt"

	"malt/rdma"
	"malt/rdma/inmem"
)

// Config is what a rank knows of its job before it has met the others.
type Config struct {
	Rank, Size, LocalRank int
	Store                 string // where the ranks meet
	Token                 string // the job's secret
	Transport             string // "auto", or one by name
}

// Open joins the job. A job of one rank needs no store.
func Open(ctx context.Context, c Config) (rdma.Transport, error) {
	switch {
	case (c.Transport == "auto" || c.Transport == "inmem") && c.Size == 1:
		return inmem.New(1)[0], nil
	case c.Transport == "inmem":
		return nil, fmt.Errorf("transport inmem joins ranks of one process only; this job has %d ranks", c.Size)
	}
	return nil, fmt.Errorf("transport %q is not known", c.Transport)
}
