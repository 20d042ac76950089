package auto

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"malt/internal/fleet"
	"malt/rdma"
)

// storeAt is an address of this machine at which nobody listens.
func storeAt(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// meetAt opens a rank for each element of host, which names its machine.
func meetAt(t *testing.T, c Config, host ...string) ([]rdma.Transport, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	all := make([]rdma.Transport, len(host))
	errs := make([]error, len(host))
	var wg sync.WaitGroup
	for rank := range host {
		c := c
		c.Rank, c.Size, c.Host = rank, len(host), host[rank]
		wg.Go(func() { all[rank], errs[rank] = Open(ctx, c) })
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, tr := range all {
			if tr != nil {
				if err := tr.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return all, errs
}

// What joins two ranks is shared memory on one host, and tcp between hosts.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		hosts, transport string
		want             string
		near             [][]int
	}{
		{"a a a", "", "shm", [][]int{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}},
		{"a a a", "shm", "shm", [][]int{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}},
		{"a b", "auto", "shm+tcp", [][]int{{0}, {1}}},
		{"a b a c a", "", "shm+tcp", [][]int{{0, 2, 4}, {1}, {0, 2, 4}, {3}, {0, 2, 4}}},
		{"a a b b b", "", "shm+tcp", [][]int{{0, 1}, {0, 1}, {2, 3, 4}, {2, 3, 4}, {2, 3, 4}}},
		{"a a", "tcp", "tcp", [][]int{{0}, {1}}},
	} {
		for _, encrypt := range []Encryption{EncryptByAddress, EncryptAlways} {
			t.Run(fmt.Sprintf("%s %s %v", c.hosts, c.transport, encrypt), func(t *testing.T) {
				all, errs := meetAt(t, Config{Store: storeAt(t), Token: "secret", Encrypt: encrypt, Transport: c.transport}, strings.Fields(c.hosts)...)
				for rank, tr := range all {
					if errs[rank] != nil {
						t.Fatalf("rank %d: %v", rank, errs[rank])
					}
					if tr.Name() != c.want || tr.Rank() != rank || !slices.Equal(tr.Near(), c.near[rank]) {
						t.Errorf("rank %d opened %s as rank %d, near %v; expected %s, near %v", rank, tr.Name(), tr.Rank(), tr.Near(), c.want, c.near[rank])
					}
				}
				exchange(t, all)
			})
		}
	}
}

// exchange sends a number from each rank to all others.
func exchange(t *testing.T, all []rdma.Transport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	var wg sync.WaitGroup
	for rank, tr := range all {
		wg.Go(func() {
			var others []int
			for r := range all {
				if r != rank {
					others = append(others, r)
				}
			}
			out, err := tr.Publish(ctx, "number", rdma.Spec{Bytes: 1}, others)
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
				return
			}
			in, err := tr.Subscribe(ctx, "number", rdma.Spec{Bytes: 1}, others)
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
				return
			}
			b, err := out.Begin()
			if err == nil {
				b[0] = byte(rank) + 1
				err = out.Commit(1, rdma.Stamp{Clock: 1}, nil)
			}
			for _, i := range in {
				if werr := tr.Wait(ctx, func() bool {
					u, ok, nerr := i.Next()
					if ok && u.Data[0] != byte(i.From())+1 {
						t.Errorf("rank %d got %d from rank %d", rank, u.Data[0], i.From())
					}
					err = nerr
					return ok || nerr != nil
				}); werr != nil {
					err = werr
				}
			}
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	wg.Wait()
}

func TestHostsDoNotFit(t *testing.T) {
	_, errs := meetAt(t, Config{Store: storeAt(t), Token: "secret", Transport: "shm"}, "alpha", "alpha", "beta")
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "ranks 0, 1 on") || !strings.Contains(err.Error(), "Use auto") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	_, errs = meetAt(t, Config{Store: "local:5eed", Token: "secret", Transport: "tcp"}, "alpha", "beta")
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "host:port") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// witnessAt has a witness join, with the number after the ranks, and returns how it ends.
func witnessAt(c Config, ranks int, host string) <-chan error {
	ended := make(chan error, 1)
	c.Rank, c.Size, c.Host = ranks, ranks, host
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
		defer cancel()
		ended <- Witness(ctx, c, func() {})
	}()
	return ended
}

// meetWith is meetAt for ranks of a job that has a witness.
func meetWith(t *testing.T, c Config, host ...string) ([]rdma.Transport, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fleet.Patience)
	defer cancel()
	all, errs := make([]rdma.Transport, len(host)), make([]error, len(host))
	var ranks sync.WaitGroup
	for rank := range host {
		c := c
		c.Rank, c.Size, c.Host = rank, len(host), host[rank]
		ranks.Go(func() { all[rank], errs[rank] = Open(ctx, c) })
	}
	ranks.Wait()
	return all, errs
}

// A witness is no rank to those that it votes for, and ends with the last of them.
func TestWitness(t *testing.T) {
	for _, hosts := range []string{"a b", "a", "a b b"} {
		c := Config{Store: storeAt(t), Token: "secret", Witnesses: 1, Survives: true}
		names := strings.Fields(hosts)
		ended := witnessAt(c, len(names), "c")
		all, errs := meetWith(t, c, names...)
		for rank, tr := range all {
			if errs[rank] != nil {
				t.Fatalf("rank %d: %v", rank, errs[rank])
			}
			v := tr.(rdma.Viewed)
			v.Survive(1)
			if tr.Size() != len(names) || !slices.Equal(v.View().Ranks, rdma.Everyone(len(names)).Ranks) {
				t.Errorf("rank %d of %d sees %v", rank, tr.Size(), v.View())
			}
		}
		exchange(t, all)
		for _, tr := range all {
			answer := tr.(rdma.Viewed).Confirm(t.Context())
			if err := tr.Wait(t.Context(), func() bool { known, _ := answer(); return known }); err != nil {
				t.Error(err)
			}
		}
		select {
		case err := <-ended:
			t.Errorf("the witness has ended before the ranks: %v", err)
		default:
		}
		for _, tr := range all {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := <-ended; err != nil {
			t.Errorf("the witness of hosts %s: %v", hosts, err)
		}
	}
}

// A host has one vote: a witness that is not alone there would be another one, or none.
func TestWitnessIsNotAlone(t *testing.T) {
	c := Config{Store: storeAt(t), Token: "secret", Witnesses: 1, Survives: true}
	ended := witnessAt(c, 2, "b")
	_, errs := meetWith(t, c, "a", "b")
	for _, err := range append(errs, <-ended) {
		if err == nil || !strings.Contains(err.Error(), "witness 0 is not alone on its host") || !strings.Contains(err.Error(), "rank 1 is on") {
			t.Errorf("said: %v", err)
		}
	}
}
