package libmalt

import (
	"context"
	"fmt"

	"malt/internal/say"
)

// Segment is an object of opaque bytes.
type Segment struct{ Object }

// NewSegment makes a segment of that many opaque bytes. Collective, as
// NewVector. Options: graph, allow_disconnected, consistency.
func (w *World) NewSegment(ctx context.Context, bytes int, name, options string) (*Segment, error) {
	s := &Segment{}
	if bytes < 0 {
		return nil, say.Errorf(ErrInvalid, "a segment of %d bytes: expected at least 0", bytes)
	}
	if err := w.makeObject(ctx, &s.Object, nil, name, options, bytes, fmt.Sprintf("%d bytes", bytes), func() {}); err != nil {
		return nil, err
	}
	return s, nil
}

// Scatter sends the first n bytes to the ranks in to, nil meaning all receivers,
// and returns n times their number. Only notify-ack waits.
func (s *Segment) Scatter(ctx context.Context, n int, to []int) (int, error) {
	if n < 0 || n > len(s.Data) {
		return 0, say.Errorf(ErrInvalid, "scatter of %d bytes of %s, which has %d", n, s, len(s.Data))
	}
	return s.way.Send(ctx, n, nil, to, 1)
}
