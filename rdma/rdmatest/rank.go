package rdmatest

import (
	"errors"
	"math"
	"reflect"
	"slices"

	"malt/rdma"
)

var rankCases = []testCase{
	{"identity", 1, identity},
	{"map", 1, mapMemory},
	{"map refuses what is not there", 1, mapTooMuch},
	{"traffic is exact", 2, traffic},
}

func identity(j *job) {
	for r, t := range j.ranks {
		if t.Rank() != r || t.Size() != j.n() || t.Name() == "" || t.Name() != j.ranks[0].Name() {
			j.Errorf("transport %d is rank %d of %d, %q", r, t.Rank(), t.Size(), t.Name())
		}
		near := t.Near()
		if !slices.IsSorted(near) || !slices.Contains(near, r) || near[0] < 0 || near[len(near)-1] >= j.n() || len(slices.Compact(slices.Clone(near))) != len(near) {
			j.Fatalf("the ranks near rank %d of %d are %v; expected ascending ranks, itself among them", r, j.n(), near)
		}
		for _, peer := range near {
			if !slices.Equal(j.ranks[peer].Near(), near) {
				j.Errorf("the ranks near rank %d are %v, those near rank %d %v", r, near, peer, j.ranks[peer].Near())
			}
		}
		for peer := range j.n() {
			if err := t.State(peer); err != nil {
				j.Errorf("rank %d: state of live rank %d: %v", r, peer, err)
			}
		}
		for _, peer := range []int{-1, j.n()} {
			if t.State(peer) == nil {
				j.Errorf("rank %d: rank %d of %d has a state", r, peer, j.n())
			}
		}
	}
}

// mapMemory: zeroed, page-aligned, outlives Close.
func mapMemory(j *job) {
	t := j.ranks[0]
	var all [][]byte
	for _, n := range []int{1, 4095, 4096, 4097, 1 << 20} {
		b, err := t.Map(n)
		if err != nil {
			j.Fatalf("Map(%d): %v", n, err)
		}
		if len(b) != n {
			j.Errorf("Map(%d) gave %d bytes", n, len(b))
		}
		if at := reflect.ValueOf(b).Pointer(); at%4096 != 0 {
			j.Errorf("Map(%d) begins at %#x, in the middle of a page", n, at)
		}
		for i, x := range b {
			if x != 0 {
				j.Fatalf("Map(%d): byte %d is %d", n, i, x)
			}
		}
		pattern(b, 0, uint64(n))
		all = append(all, b)
	}
	if err := t.Close(); err != nil {
		j.Fatal(err)
	}
	for _, b := range all {
		u := rdma.Update{Data: b, Stamp: rdma.Stamp{Clock: uint64(len(b))}}
		if err := intact(u, 0, len(b)); err != nil {
			j.Errorf("after Close: %v", err)
		}
		if err := t.Unmap(b); err != nil {
			j.Errorf("Unmap after Close: %v", err)
		}
	}
}

func mapTooMuch(j *job) {
	for _, n := range []int{1 << 45, math.MaxInt} {
		if b, err := j.ranks[0].Map(n); !errors.Is(err, rdma.ErrNoMemory) {
			j.Errorf("Map(%d): %d bytes, error %v; expected ErrNoMemory", n, len(b), err)
		}
	}
	if b, err := j.ranks[0].Map(-1); err == nil {
		j.Errorf("Map(-1) gave %d bytes", len(b))
	}
}

// traffic: only updates that were meant for a peer count, by payload bytes.
func traffic(j *job) {
	out, in := j.star(rdma.Spec{Bytes: 1000})
	for c := uint64(1); c <= 4; c++ {
		to := j.others(0)
		if c == 3 {
			to = to[:1]
		}
		j.mustPut(out, 0, c, int(c)*100, to)
		for _, r := range to {
			j.take(in[r], c, int(c)*100)
		}
	}
	if err := out.Advance(9); err != nil {
		j.Fatal(err)
	}
	j.settle()
	for _, r := range j.others(0) {
		want := rdma.Traffic{SentMessages: 4, SentBytes: 1000}
		if r != 1 {
			want = rdma.Traffic{SentMessages: 3, SentBytes: 700}
		}
		if got := j.payload(0, r); got != want {
			j.Errorf("rank 0 to %d: %+v, expected %+v", r, got, want)
		}
		want = rdma.Traffic{ReceivedMessages: want.SentMessages, ReceivedBytes: want.SentBytes}
		if got := j.payload(r, 0); got != want {
			j.Errorf("rank %d from 0: %+v, expected %+v", r, got, want)
		}
		if got := in[r].Published(); got != want.ReceivedMessages {
			j.Errorf("rank %d: %d published, expected %d", r, got, want.ReceivedMessages)
		}
	}
}

// payload is Traffic without what a network adds.
func (j *job) payload(rank, peer int) rdma.Traffic {
	c := j.ranks[rank].Traffic(peer)
	c.SentWire, c.ReceivedWire = 0, 0
	c.SentPlaced, c.ReceivedPlaced, c.RDMA = 0, 0, 0
	return c
}
