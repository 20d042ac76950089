package auto

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
)

func TestAloneNeedsNoStore(t *testing.T) {
	for _, name := range []string{"", "auto", "inmem"} {
		tr, err := Open(context.Background(), Config{Size: 1, Transport: name})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if tr.Name() != "inmem" || tr.Rank() != 0 || tr.Size() != 1 {
			t.Errorf("%q opened %s, rank %d of %d", name, tr.Name(), tr.Rank(), tr.Size())
		}
		out, err := tr.Publish(t.Context(), "box", rdma.Spec{Bytes: 8}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := out.Begin(); len(b) != 8 || err != nil || out.Commit(8, rdma.Stamp{}, nil) != nil {
			t.Errorf("%q: a box for nobody: %d bytes, %v", name, len(b), err)
		}
		w, err := tr.Words(t.Context(), "words", 1)
		if err != nil {
			t.Fatal(err)
		}
		w.Set(0, 7)
		if v, err := w.Get(0, 0); v != 7 || err != nil || !w.Heard(0) {
			t.Errorf("%q: its own word is %d, %v", name, v, err)
		}
		v := tr.(rdma.Viewed)
		v.Survive(1)
		if known, _ := v.Confirm(t.Context())(); !v.View().Has(0) || v.Out() != nil || !known {
			t.Errorf("%q: it does not take part: %+v", name, v.View())
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOneMachineIsShm(t *testing.T) {
	for i, name := range []string{"", "auto", "shm"} {
		store := fmt.Sprintf("local:%x%d", time.Now().UnixNano(), i)
		ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
		var all sync.WaitGroup
		for rank := range 2 {
			all.Go(func() {
				tr, err := Open(ctx, Config{Rank: rank, Size: 2, Store: store, Token: "t", Transport: name})
				if err != nil {
					t.Errorf("%q: %v", name, err)
					return
				}
				if tr.Name() != "shm" || tr.Rank() != rank {
					t.Errorf("%q opened %s, rank %d", name, tr.Name(), tr.Rank())
				}
				if err := tr.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		cancel()
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		Config
		want string
	}{
		{Config{Size: 1, Transport: "smh"}, "one of auto, shm, tcp, inmem"},
		{Config{Size: 2, Transport: "inmem"}, "Use shm or auto"},
		{Config{Size: 2, Store: "nowhere", Token: "t"}, "host:port"},
		{Config{Size: 2}, "local: and"},
	} {
		if _, err := Open(context.Background(), c.Config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; expected %q", c.Config, err, c.want)
		}
	}
	if n := Names(); !slices.Equal(n, []string{"shm", "tcp", "inmem"}) {
		t.Errorf("Names() = %v", n)
	}
}
