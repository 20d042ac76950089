package processes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"malt/libmalt"
	"malt/libmalt/rule"
)

// claim is what the ranks do for the tests in claims_test.go.
type claim struct {
	Graph, Mode string
	Elements    int    // float32
	Rounds      int    // 0: until the test has had enough
	Train       uint64 // 0: a round is a scatter and a gather; else a step with this seed, and a sync
}

// outcome is what each of them reports at the end.
type outcome struct {
	Sent  uint64 // bytes that the transport has counted during the rounds
	Ahead int    // scatters that were done before a receiver had gathered what it sent
	Hash  string // of the vector
}

// claimant is a rank of such a test.
type claimant struct {
	*rank
	claim
	mode rule.Rule
	v    *libmalt.Vector
	last []uint64 // by rank: clock of the update folded last
	out  outcome
}

// runClaim is the program.
func runClaim(r *rank) error {
	x := &claimant{rank: r}
	if err := r.args(&x.claim); err != nil {
		return err
	}
	var err error
	if x.mode, err = rule.Parse(x.Mode); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	w, err := libmalt.Join(ctx, r.Config)
	if err != nil {
		return err
	}
	if x.v, err = w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: x.Elements}}, "w", "graph="+x.Graph+" consistency="+x.Mode); err != nil {
		return err
	}
	x.last = make([]uint64, w.Size())
	before := sent(w)
	r.set(stage, joined)
	round := x.exchange
	if x.Train != 0 {
		round = x.train
	}
	for i := 0; i < x.Rounds || x.Rounds == 0 && r.page.at(r.Config.Rank, enough).Load() == 0; i++ {
		if err := round(ctx); err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
	}
	hash := sha256.Sum256(x.v.Bytes())
	x.out.Sent, x.out.Hash = sent(w)-before, hex.EncodeToString(hash[:])
	return errors.Join(w.Close(), r.report(x.out))
}

// sent is what this rank has sent to all others.
func sent(w *libmalt.World) (bytes uint64) {
	for peer := range w.Size() {
		bytes += w.Traffic(peer).SentBytes
	}
	return bytes
}

// word is a word of a rank, as all ranks see it.
func (x *claimant) word(rank int, w word) uint64 { return uint64(x.page.at(rank, w).Load()) }

// train is a step of training and a sync.
func (x *claimant) train(ctx context.Context) error {
	rnd := rand.New(rand.NewPCG(x.Train, uint64(x.Config.Rank)<<32|x.v.Clock()))
	b := x.v.Bytes()
	for i := 0; i < len(b); i += 4 {
		w := math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
		binary.LittleEndian.PutUint32(b[i:], math.Float32bits(w+rnd.Float32()))
	}
	_, err := x.v.Sync(ctx, 1)
	return err
}

// exchange is a scatter and a gather, held against what the mode promises about
// the order of events. What counts a thing is written before others can see the
// thing itself: begun before the scatter, gathers before its acknowledgement.
func (x *claimant) exchange(ctx context.Context) error {
	me, clock := x.Config.Rank, x.v.Clock()+1
	fill(x.v.Bytes(), 4, value(me, clock))
	x.set(begun, int(clock))
	x.set(activity, int(scattering))
	if _, err := x.v.Scatter(ctx, nil, 1); err != nil {
		return err
	}
	if x.mode.Kind == rule.NotifyAck {
		if err := x.checkAhead(clock); err != nil {
			return err
		}
	}
	x.set(scatters, int(clock))
	x.set(activity, int(gathering))
	us, err := x.v.Begin(ctx)
	if err != nil {
		return err
	}
	x.set(activity, int(computing))
	for _, u := range us {
		if err := x.checkUpdate(u, clock); err != nil {
			return err
		}
	}
	if err := x.checkAll(us, clock); err != nil {
		return err
	}
	if x.mode.Kind == rule.SSP {
		for _, s := range x.v.Senders() {
			if theirs := x.word(s, begun); theirs+x.mode.N < clock && !x.leaves(s) {
				return fmt.Errorf("a gather at clock %d has not waited for rank %d, which is at %d", clock, s, theirs)
			}
		}
	}
	x.set(gathers, int(clock))
	return x.v.End(true)
}

// leaves tells whether a rank may be about to leave: then nobody waits for it.
func (x *claimant) leaves(rank int) bool { return x.word(rank, enough) != 0 }

// checkAhead: scatter n is done only when every receiver has folded n-d.
func (x *claimant) checkAhead(clock uint64) error {
	for _, r := range x.v.Receivers() {
		done := x.word(r, gathers)
		if done+x.mode.N < clock && !x.leaves(r) {
			return fmt.Errorf("scatter %d has not waited for rank %d, which has gathered %d", clock, r, done)
		}
		if done < clock {
			x.out.Ahead++
		}
	}
	return nil
}

// checkUpdate: whole, not seen before, where nothing may be overwritten the one
// of this very round, and within the slack.
func (x *claimant) checkUpdate(u libmalt.Update, clock uint64) error {
	got, _, err := constant(u.Data, 4)
	switch {
	case err != nil || got != value(u.Rank, u.Clock):
		return fmt.Errorf("G3: update of rank %d clock %d holds %s (%v)", u.Rank, u.Clock, decoded(got), err)
	case u.Clock <= x.last[u.Rank]:
		return fmt.Errorf("G2: gather %d gives clock %d of rank %d after its clock %d", clock, u.Clock, u.Rank, x.last[u.Rank])
	case (x.mode.Kind == rule.NotifyAck || x.mode.Kind == rule.BSP) && u.Clock != clock:
		return fmt.Errorf("G2: gather %d gives clock %d of rank %d: one was overwritten or lost", clock, u.Clock, u.Rank)
	case x.mode.Kind == rule.SSP && u.Clock+x.mode.N < clock:
		return fmt.Errorf("G7: gather %d gives clock %d of rank %d: the slack is %d", clock, u.Clock, u.Rank, x.mode.N)
	}
	x.last[u.Rank] = u.Clock
	return nil
}

// checkAll: where each round's updates are all to come, they have.
func (x *claimant) checkAll(us []libmalt.Update, clock uint64) error {
	if x.mode.Kind != rule.NotifyAck && x.mode.Kind != rule.BSP {
		return nil
	}
	for _, s := range x.v.Senders() {
		if x.last[s] != clock && !x.leaves(s) {
			return fmt.Errorf("G2: gather %d gives %d updates, none of rank %d", clock, len(us), s)
		}
	}
	return nil
}
