package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/rendezvous"
)

// devour asks for more memory than the control group in its first argument has.
// It says for each way of asking whether it was refused, and on what grounds.
func devour(r *fleet.Rank) error {
	group := r.Args[0]
	if err := os.WriteFile(group+"/cgroup.procs", []byte(fmt.Sprint(os.Getpid())), 0); err != nil {
		return err
	}
	t, err := Open(context.Background(), rendezvous.Config{Size: 1, Store: r.Store})
	if err != nil {
		return err
	}
	refused := func(what string, err error) {
		r.Say("%s: %v %q", what, errors.Is(err, rdma.ErrNoMemory) && strings.Contains(strings.Join(strings.Fields(err.Error()), " "), "memory limit of control group "+group), err.Error())
	}
	_, err = t.Map(1 << 30)
	refused("map", err)

	out, err := t.Publish(context.Background(), "box", rdma.Spec{Bytes: 1 << 30}, nil)
	if err != nil {
		return err
	}
	_, err = out.Begin()
	refused("slot", err)

	// Bit by bit, too: each part fits, their sum does not.
	for range 100 {
		var b []byte
		if b, err = t.Map(20 << 20); err != nil {
			break
		}
		for i := range b {
			b[i] = 1
		}
	}
	refused("sum", err)
	if err := t.Close(); err != nil {
		return err
	}
	r.Say("alive")
	return nil
}

// crowd has all ranks of a job in one control group ask for memory at the same
// moment: each part would fit, their sum does not.
func crowd(r *fleet.Rank) error {
	group := r.Args[0]
	if err := os.WriteFile(group+"/cgroup.procs", []byte(fmt.Sprint(os.Getpid())), 0); err != nil {
		return err
	}
	t, err := Open(context.Background(), rendezvous.Config{Rank: r.Rank, Size: r.Size, Store: r.Store})
	if err != nil {
		return err
	}
	w, err := t.Words(context.Background(), "start", 1)
	if err != nil {
		return err
	}
	w.Set(0, 1)
	err = t.Wait(context.Background(), func() bool { // all together
		for rank := range r.Size {
			if v, _ := w.Get(rank, 0); v == 0 {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	b, err := t.Map(100 << 20)
	switch {
	case err == nil:
		for i := range b {
			b[i] = 1
		}
		r.Say("got it")
	case errors.Is(err, rdma.ErrNoMemory):
		r.Say("refused")
	default:
		return err
	}
	r.Hear() // holds it until all have said so
	return t.Close()
}
