//go:build explore

package libmalt

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"malt/internal/explore"
	"malt/libmalt/boxes"
	"malt/libmalt/codec"
	"malt/libmalt/reduce"
	"malt/libmalt/rule"
	"malt/rdma/explored"
)

// Sums of changes, in every interleaving. The object is one number. The k-th change of a rank
// is a digit of it, in base 4: so the number tells which changes are in it, and a 2 that one is
// in it twice.
//
// S is a sync of a change, T one that may run into its timeout, P a change and a scatter alone, G a
// gather alone. h is a change that is not sent and an allreduce of all; H one that may run
// into its timeout and is given up, j one that may find that the other has; A a barrier that no
// other rank is in.

const mostChanges = 4 // of a rank

func oneNumber(v *Vector, b *boxes.Boxes) {
	v.runs = []reduce.Run{{Type: reduce.Float64, Bytes: 8}}
	b.Of(v.runs)
	b.Uses(codec.ExploredChanges(&v.Member, v.runs, v.mode.Load().fold))
}

func (a *actor) changes() bool { return a.s.mode.Load().fold.Changes() }

func (a *actor) number() float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(a.s.Data))
}

// change carries out a letter.
func (a *actor) change(ctx context.Context, letter rune) (err error) {
	if a.upTo == nil {
		a.upTo = make([]int, a.w.job.Size)
	}
	sent := uint64(math.MaxUint64) // not by a scatter
	if !strings.ContainsRune("GA", letter) {
		digit := a.w.job.Rank*mostChanges + len(a.made)
		binary.LittleEndian.PutUint64(a.s.Data, math.Float64bits(a.number()+math.Ldexp(1, 2*digit)))
	}
	if strings.ContainsRune("STP", letter) {
		sent = a.s.Clock() + 1
	}
	if !strings.ContainsRune("GA", letter) {
		a.made = append(a.made, sent)
	}
	patience := ctx
	if strings.ContainsRune("THA", letter) {
		patience = &explored.Patience{Context: ctx}
	}
	fold := a.v.mode.Load().fold
	switch letter {
	case 'S', 'T':
		_, err = a.s.way.Sync(patience, nil, 1, -1, fold)
	case 'P':
		if _, err = a.s.way.Send(ctx, 8, nil, nil, 1); err == nil {
			return nil
		}
	case 'G':
		_, err = a.s.way.Gather(ctx, fold)
	case 'A':
		err = a.w.Barrier(patience)
	default:
		a.given[a.w.job.Calls()+1] = len(a.made)
		err = a.v.AllReduce(patience, fold.String())
	}
	switch {
	case patience != ctx && errors.Is(err, ErrTimeout):
		return nil
	case errors.Is(err, ErrState) && strings.Contains(a.play.scripts[a.w.job.Rank], "H"):
		return nil // the others have completed that allreduce
	case strings.ContainsRune("HjA", letter) && (errors.Is(err, ErrLeft) || errors.Is(err, ErrMismatch)):
		return nil
	case err != nil:
		return err
	}
	if letter == 'A' {
		return nil
	}
	a.law(strings.ContainsRune("hHj", letter))
	return nil
}

// law holds the array against what is promised: see G12 and, with all, G13.
func (a *actor) law(all bool) {
	upTo := make([]int, a.w.job.Size)
	held := a.s.mode.Load().filter.On() // until an allreduce
	set := byte(1) << 7
	bits, clock := uint64(a.number()), a.s.Clock()
	for i, b := range a.all {
		for k := range mostChanges {
			switch digit := bits >> (2 * (i*mostChanges + k)) & 3; {
			case digit == 1 && (upTo[i] == k || held && !all):
				upTo[i]++
			case digit != 0:
				a.t.Fail("change %d of rank %d is in the array of rank %d %d times, after %d others", k, i, a.w.job.Rank, digit, upTo[i])
			}
		}
		set ^= byte(upTo[i]) << (2 * i)
		switch m := a.s.mode.Load().Rule; {
		case held && !all:
		case upTo[i] < a.upTo[i] && !held:
			a.t.Fail("rank %d had %d changes of rank %d, and has %d", a.w.job.Rank, a.upTo[i], i, upTo[i])
		case (all || !held) && upTo[i] < slices.Max(b.given[:a.w.job.Calls()+1]) && (!b.t.Dead() || !strings.Contains(a.play.scripts[i], "h")):
			a.t.Fail("after %d calls rank %d has %d changes of rank %d, which had made %v before each", a.w.job.Calls(), a.w.job.Rank, upTo[i], i, b.given)
		case m.Kind != rule.Async && !b.t.Dead() && !strings.ContainsAny(strings.TrimRight(a.play.scripts[i], "b"), "bAhHjc"):
			behind := uint64(0)
			if k := upTo[i]; k < len(b.made) && b.made[k] <= clock {
				behind = clock - b.made[k] + 1
			}
			if behind > m.N || i == a.w.job.Rank && upTo[i] != len(a.made) {
				a.t.Fail("rank %d at clock %d, slack %d: has %d changes of rank %d, made at %d", a.w.job.Rank, clock, m.N, upTo[i], i, b.made)
			}
			if age := a.v.Age(); m.Kind == rule.SSP && (age > m.N || age < behind) {
				a.t.Fail("rank %d at clock %d: age %d, and rank %d is %d behind", a.w.job.Rank, clock, age, i, behind)
			}
		}
	}
	a.upTo = slices.Clone(upTo)
	switch {
	case all:
		a.fold(firstCall+a.w.job.Calls(), set)
	case a.s.Lockstep() && !strings.ContainsAny(strings.Join(a.play.scripts, ""), "AHj"):
		a.fold(clock, set) // the same on all: see agree
	}
}

func TestExploreChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"bsp", false, play{"consistency=bsp fold=sum-changes", []string{"SS", "SS"}, 1, false, nil}},
		{"bsp, uneven", false, play{"consistency=bsp fold=sum-changes", []string{"S", "SSS"}, 0, false, nil}},
		{"bsp, barrier", false, play{"consistency=bsp fold=sum-changes", []string{"SbS", "SSbS"}, 0, false, nil}},
		{"bsp, away, then alone", false, play{"consistency=bsp fold=sum-changes preemptions=1", []string{"bS", "Sb", "SSb"}, 0, false, nil}},
		{"bsp, barrier, a death", true, play{"consistency=bsp fold=sum-changes survive=1", []string{"SSbS", "SbS"}, 1, false, nil}},
		{"bsp, away and back", false, play{"consistency=bsp fold=sum-changes", []string{"SAS", "SSS"}, 0, false, nil}},
		{"bsp, allreduce", false, play{"consistency=bsp fold=sum-changes", []string{"ShS", "PhS"}, 0, false, nil}},
		{"bsp, a death", false, play{"consistency=bsp fold=sum-changes survive=1", []string{"SS", "SS"}, 1, false, nil}},
		{"bsp, three ranks", false, play{"consistency=bsp fold=sum-changes preemptions=1", []string{"SS", "S", "SS"}, 0, false, nil}},
		{"bsp, three ranks, a death", true, play{"consistency=bsp fold=sum-changes survive=1 dies=2 preemptions=1", []string{"S", "S", "S"}, 1, false, nil}},
		{"bsp, three ranks, a death, longer", true, play{"consistency=bsp fold=sum-changes survive=1 preemptions=1", []string{"SS", "S", "SS"}, 1, false, nil}},
		{"ssp", false, play{"consistency=ssp:1 fold=sum-changes", []string{"S", "SSS"}, 0, false, nil}},
		{"ssp, a timeout", false, play{"consistency=ssp:0 fold=sum-changes", []string{"TS", "SS"}, 0, false, nil}},
		{"ssp, three ranks, a timeout", false, play{"consistency=ssp:0 fold=sum-changes preemptions=1", []string{"TS", "S", "S"}, 0, false, nil}},
		{"ssp, away and back", false, play{"consistency=ssp:0 fold=sum-changes", []string{"SAS", "SSS"}, 0, false, nil}},
		{"ssp, three ranks, away and back", false, play{"consistency=ssp:0 fold=sum-changes preemptions=1", []string{"AS", "SS", "S"}, 0, false, nil}},
		{"ssp, allreduce", false, play{"consistency=ssp:0 fold=sum-changes", []string{"ShS", "SShS"}, 0, false, nil}},
		{"ssp, away, then allreduce", true, play{"consistency=ssp:0 fold=sum-changes", []string{"SAh", "Sjh"}, 0, false, nil}},
		{"ssp, allreduce given up", false, play{"consistency=ssp:0 fold=sum-changes", []string{"SHS", "SjS"}, 0, false, nil}},
		{"ssp, three ranks, a death", false, play{"consistency=ssp:0 fold=sum-changes survive=1 dies=2 preemptions=1", []string{"PG", "P", "P"}, 1, false, nil}},
		{"ssp, three ranks, a death, longer", true, play{"consistency=ssp:0 fold=sum-changes survive=1 preemptions=1", []string{"SS", "S", "SS"}, 1, false, nil}},
		{"ssp, allreduce and a death", false, play{"consistency=ssp:0 fold=sum-changes survive=1 preemptions=1", []string{"PhS", "PhS"}, 1, false, nil}},
		{"async", false, play{"consistency=async fold=sum-changes", []string{"PPG", "PGP"}, 0, false, nil}},
		{"async, allreduce", false, play{"consistency=async fold=sum-changes", []string{"PGhG", "PhG"}, 0, false, nil}},
		{"async, three ranks", false, play{"consistency=async fold=sum-changes preemptions=1", []string{"SS", "PP", "S"}, 0, false, nil}},
	} {
		explore.Case(t, c.name, c.large, c.play.run)
	}
}
