package routetest

import "context"

// Held is a call that goes on step by step: between two steps the test does something
// else.
type Held struct {
	call  func(ctx context.Context) error
	begun bool
	waits chan error
	on    chan context.Context
	over  chan error
}

// Hold holds a call before its first step.
func Hold(call func(ctx context.Context) error) *Held {
	return &Held{call: call, waits: make(chan error), on: make(chan context.Context), over: make(chan error, 1)}
}

// Step makes one step. waits is what the call lacks, nil if it is over.
func (h *Held) Step() (waits, err error) { return h.next(Tried()) }

// Finish makes all steps to the end.
func (h *Held) Finish(ctx context.Context) error {
	waits, err := h.next(ctx)
	if waits != nil {
		return h.GiveUp()
	}
	return err
}

// GiveUp ends the call as its timeout would.
func (h *Held) GiveUp() error {
	close(h.on)
	return <-h.over
}

func (h *Held) next(ctx context.Context) (waits, err error) {
	if h.begun {
		h.on <- ctx
	} else {
		h.begun = true
		go func() { h.over <- h.call(&holding{ctx, h}) }()
	}
	select {
	case waits = <-h.waits:
		return waits, nil
	case err = <-h.over:
		return nil, err
	}
}

// holding is the context of a held call.
type holding struct {
	context.Context
	h *Held
}

func (c *holding) GoOn(waits error) bool {
	c.h.waits <- waits
	next, more := <-c.h.on
	if more {
		c.Context = next
	}
	return more
}

// Tried is a context that lets a call make one step.
func Tried() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	return ctx
}
