//go:build explore

package libmalt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"malt/internal/explore"
	"malt/libmalt/engine"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/rows"
	"malt/libmalt/spvec"
	"malt/rdma"
	"malt/rdma/explored"
)

// Rows with ids, in every interleaving. The plan is made beforehand. Each rank holds two rows, of ids
// that its neighbours hold, too, and wants those of all; a message has one row.
//
// u is a sync, U one that may find that another rank has given it up, V one that may run into its
// timeout and is given up then.

func (p *play) keyed() bool { return strings.ContainsAny(strings.Join(p.scripts, ""), "uUV") }

// exploredIDs are those of the rows of a rank.
func exploredIDs(rank int) []uint64 { return []uint64{uint64(rank), uint64(rank) + 1} }

// keyedActors makes the vectors of all.
func keyedActors(p *play, job *explored.Job, all []*actor, log []byte) {
	var objects []core.Object
	var ids []rows.Ids
	var wants []uint64
	for r := range all {
		wants = append(wants, uint64(r))
	}
	row := spvec.Shape{Width: 1, Elem: 8}
	for r, a := range all {
		objects = append(objects, core.Carried{M: &a.v.Member})
		ids = append(ids, rows.Ids{Rows: exploredIDs(r), Wants: append(wants, uint64(len(all)))})
	}
	g := all[0].v.mode.Load().Graph
	for r, e := range rows.Explored(objects, g, reduce.Sum, row, ids) {
		a := all[r]
		e.InMessages(1)
		b := engine.Meet(&a.v.Member, e)
		a.k, a.v.keyed, a.v.rows, a.v.way, a.v.Body = e, true, row, b, b
		a.v.Data = e.Memory()[:16:16]
		a.v.Base, a.v.Open = &a.v.Data[0], true
		a.w.timeout = time.Hour // in which no case is
		a.w.job.Enlist(&a.v.Member)
		a.play, a.all, a.log = p, all, log
	}
	for r, a := range all {
		a.k.Queues(func(reader int, spec rdma.Spec) rdma.Outbox {
			out, in, err := job.Box(r, spec, []int{reader})
			if err != nil {
				panic(err)
			}
			all[reader].k.Hear(in[0])
			return out
		})
	}
}

// share carries out a letter.
func (a *actor) share(ctx context.Context, letter rune) error {
	n := a.w.job.Calls() + 1
	a.fillWith(valueOf(a.w.job.Rank, n))
	values, missing, _, err := a.v.Wanted()
	if err != nil {
		return err
	}
	before, patience := slices.Clone(values), ctx
	if letter == 'V' {
		patience = &explored.Patience{Context: ctx}
	}
	switch _, err = a.s.way.Sync(patience, nil, 1, -1, reduce.Sum); {
	case letter != 'u' && errors.Is(err, ErrLeft), letter == 'V' && errors.Is(err, ErrTimeout):
		if !slices.Equal(values, before) {
			return fmt.Errorf("call %d of rank %d, which has been given up, has changed its rows", n, a.w.job.Rank)
		}
		return nil
	case err != nil:
		return err
	}
	for id, none := range missing {
		want := 0.0
		for r := range a.all {
			if slices.Contains(exploredIDs(r), uint64(id)) {
				want += valueOf(r, n)
			}
		}
		if x := math.Float64frombits(binary.LittleEndian.Uint64(values[8*id:])); x != want || none != 0 {
			a.t.Fail("call %d gives rank %d %v for id %d, not %v", n, a.w.job.Rank, x, id, want)
		}
	}
	a.levelled(n)
	return nil
}

func TestExploreRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"two ranks", false, play{"graph=butterfly:2 preemptions=1", []string{"uu", "uu"}, 0, false, nil}},
		{"one leaves", false, play{"graph=butterfly:2 preemptions=3", []string{"u", "u"}, 0, false, nil}},
		{"a death", false, play{"graph=butterfly:2 preemptions=1", []string{"u", "u"}, 1, false, nil}},
		{"given up", false, play{"graph=butterfly:2 preemptions=1", []string{"Vu", "Uu"}, 0, false, nil}},
		{"three ranks", true, play{"graph=butterfly:3 preemptions=1", []string{"u", "u", "u"}, 0, false, nil}},
		{"three ranks, given up", true, play{"graph=butterfly:3 preemptions=1", []string{"V", "U", "U"}, 0, false, nil}},
		{"two stages", true, play{"graph=butterfly:2x2 preemptions=1", []string{"u", "u", "u", "u"}, 0, false, nil}},
		{"two ranks, in any order", true, play{"graph=butterfly:2", []string{"u", "u"}, 0, false, nil}},
		{"given up, in any order", true, play{"graph=butterfly:2", []string{"Vu", "Uu"}, 0, false, nil}},
	} {
		explore.Case(t, c.name, c.large, c.play.run)
	}
}
