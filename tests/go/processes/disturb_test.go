package processes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"malt/libmalt"
)

// poke sends signals that mean nothing: every system call of MALT must bear to
// be interrupted.
func (c *controller) poke() {
	rnd := rand.New(rand.NewPCG(c.Seed, 2))
	for range c.pokes {
		select {
		case <-c.done:
			return
		case <-time.After(upTo(rnd, 2*time.Millisecond)):
		}
		c.job.ranks[rnd.IntN(c.ranks)].signal(pick(rnd, syscall.SIGURG, syscall.SIGWINCH, syscall.SIGCHLD))
	}
}

// intrude starts a process that claims to be a rank that has arrived already.
func (c *controller) intrude(i intruder) error {
	if !c.await(i.rank, i.after) {
		return nil
	}
	s := setting{Program: "intruder", Args: []byte("null"), Config: c.job.config(i.rank)}
	if !i.token {
		s.Config.Token = ""
	}
	p, err := c.job.start(s)
	if err != nil {
		return err
	}
	<-p.ended
	p.orders.Close()
	p.pipe.Close()
	c.mu.Lock()
	c.tally.add("intruders", 1)
	c.mu.Unlock()
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("another rank %d: %v; it wrote:\n%s", i.rank, p.cmd.ProcessState, &p.output)
	}
	return nil
}

// runIntruder is that process: it must be refused, and leave nothing.
func runIntruder(r *rank) error {
	if err := warmUp(); err != nil {
		return err
	}
	before, err := takeInventory()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), arrival)
	defer stop()
	w, err := libmalt.Join(ctx, r.Config)
	if err == nil {
		return errors.Join(errors.New("it was let in"), w.Close())
	}
	return backTo(before)
}
