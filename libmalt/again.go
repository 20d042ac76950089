package libmalt

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"malt/internal/say"
	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/rdma"
	"malt/rdma/auto"
)

// Where ranks that died are replaced (Config.Replace), a new process takes the number of one
// that died. All meet again, in a world of their own with new boxes: the ranks that are left,
// each from within a sync, and the new processes, which begin the program. The ranks that are left
// make again there what they made before their first sync: their vectors, with the memory
// and the clock that these have, and the collective calls. A new process makes the same,
// since it runs the same program, and its vectors get the values and clocks of the lowest rank that
// is left. So it comes to its first sync, which is the one that the others are in.
//
// For that the ranks that are left have to be at the same place of the program, where a new
// process comes to first: before a sync, with the same clock, of the vector that was the first
// to be synced. rdma.Replacing finds one that all of them come to.
//
// They meet there aside, and the old world stays as it is. Each then says in it, in a collective
// call, whether all has gone well, and all hear the same, whoever dies (G8). If all say yes they go
// on in the new world, else in the old one. A new process waits for that in its first sync.
type again struct {
	config Config // with the try by which this world has met
	t      rdma.Replacing
	past   uint64              // generations in worlds before this one
	donor  int                 // whose values new processes get; -1: there is none
	fresh  bool                // this process is new, and has not synced yet
	heirs  map[*Vector]*Vector // of those in the world before
	tried  uint64              // the last try

	mu     sync.Mutex
	head   *Vector // with its sync a round of the program begins
	repeat []func(context.Context, *World) error
	bytes  int // that these have
}

// Bytes of collective calls before the first sync that are kept.
const (
	mostOfCall  = 64 << 10
	mostOfCalls = 1 << 20
)

// replaces has new processes take the place of ranks that die in w, or w be the world
// where they do.
func (w *World) replaces(ctx context.Context, c Config) error {
	t, ok := w.job.T.(rdma.Replacing)
	if !ok || len(t.Near()) < t.Size() {
		return say.Errorf(ErrUnsupported, "on_death=replace is for ranks of one machine that share memory").
			At("transport %s connects these", w.job.T.Name()).Try("Start the job with `malt run -n`, or take on_death=continue.")
	}
	a := &again{config: c, t: t, tried: c.try, donor: -1, fresh: c.try > 0 && c.was == 0}
	if c.try > 0 {
		var data []byte
		if c.was > 0 {
			data = binary.LittleEndian.AppendUint64(nil, c.was)
		}
		parts, err := w.collect(ctx, core.OpOf("malt.init", "again", nil), data)
		if err != nil {
			return err
		}
		a.past, a.donor = largest(parts), slices.IndexFunc(parts, func(p []byte) bool { return len(p) > 0 })
		if a.donor < 0 {
			return errNobodyLeft("malt.init")
		}
	}
	w.again = a
	t.Replace()
	return nil
}

// repeats keeps a call that a new process makes, too, if it comes before the first sync; with
// it go so many bytes.
func (w *World) repeats(what string, bytes int, call func(context.Context, *World) error) {
	a := w.again
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.head != nil {
		return
	}
	if a.bytes += bytes; bytes > mostOfCall || a.bytes > mostOfCalls {
		a.refuse("%s of %d bytes came before the first sync, where up to %d of a call and %d of all calls are kept", what, bytes, mostOfCall, mostOfCalls)
	}
	a.repeat = append(a.repeat, call)
}

// refuse has no process take part again, from now on.
func (a *again) refuse(format string, args ...any) {
	a.t.Refuse(say.Errorf(ErrUnsupported, format, args...).At("a rank that joins again begins the program, and would not make the same calls").
		Try("Take --on-death continue: the others go on without it."))
}

// When a call comes that a new process cannot make.
const (
	beforeSync = 1 << iota // before the first sync, as it would make it, too
	afterSync              // after that, as it would miss it
)

// keepsOut has no process take part again if this is such a time.
func (w *World) keepsOut(what string, when int) {
	if w.again == nil {
		return
	}
	now, which := beforeSync, "before"
	if w.again.begun() {
		now, which = afterSync, "after"
	}
	if when&now != 0 {
		w.again.refuse("%s was called %s the first sync", what, which)
	}
}

// begun tells whether there has been a sync.
func (a *again) begun() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.head != nil
}

// kept is a copy of data, where calls are kept.
func (w *World) kept(data []byte) []byte {
	if w.again == nil || len(data) > mostOfCall || w.again.begun() {
		return nil
	}
	return slices.Clone(data)
}

// past is how many generations there were in worlds before this one.
func (w *World) past() uint64 {
	if w.again == nil {
		return 0
	}
	return w.again.past
}

// starts tells whether with a sync of v a round of the program begins.
func (a *again) starts(v *Vector) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.head == nil {
		a.head = v
	}
	return a.head == v
}

func errNobodyLeft(call string) error {
	return say.Errorf(rdma.ErrLeft, "no rank of the job is left").In(call)
}

// errAlone is why a try is over.
var errAlone = errors.New("a rank or a new process has ended meanwhile")

var (
	backOp  = core.OpOf("malt.sync", "ranks that are back", nil)
	firstOp = core.OpOf("malt.sync", "the first of a rank that is back", nil)
)

// Meet is called before each sync of v. It takes in processes that are to be ranks again:
// then the job is another World, in which Heir is v. Else it is nil.
func (v *Vector) Meet(ctx context.Context) (*World, error) {
	w := v.w
	a := w.again
	if a == nil || !a.starts(v) {
		return nil, nil
	}
	if a.fresh {
		var parts [][]byte
		for range 2 { // that it is here, and that all take part with it
			var err error
			if parts, err = w.collect(ctx, firstOp, nil); err != nil {
				return nil, err
			}
		}
		if !slices.ContainsFunc(parts, func(p []byte) bool { return len(p) > 0 }) {
			return nil, errNobodyLeft("malt.sync") // whose values it has
		}
		if a.fresh = false; a.config.Joined != nil {
			a.config.Joined()
		}
	}
	try := a.t.MeetAt(v.Clock()+1, v.mode.Load().Rule.Slack(), a.tried)
	if try == 0 {
		return nil, nil
	}
	defer a.t.Met()
	a.tried = try
	if !w.decide(ctx, try) {
		return nil, nil
	}
	// The others count on this rank now. Each of them has met, or failed to, in time.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*w.timeout)
	defer stop()
	next, failed := w.meet(ctx, try)
	word := []byte{1}
	if failed != nil {
		word[0] = 0
	}
	words, err := w.collect(ctx, backOp, word)
	for _, said := range words {
		if failed == nil && (err != nil || len(said) == 1 && said[0] == 0) {
			failed = errAlone
		}
	}
	if err != nil || failed != nil {
		if next != nil {
			next.abandon()
		}
		return nil, err
	}
	for old := range next.again.heirs {
		w.job.Cede(&old.Member)
	}
	next.again.starts(next.Heir(v))
	if _, err = next.collect(ctx, firstOp, word); err == nil {
		err = w.job.Close(ctx)
	}
	return next, err
}

// Heir is v in the World that has come after that in which v was made.
func (w *World) Heir(v *Vector) *Vector { return w.again.heirs[v] }

// decide waits until all that are left are at the try to meet, and tells whether they do. A rank
// that cannot wait any longer has them not meet, unless that is decided: then its sync says
// what it waits for.
func (w *World) decide(ctx context.Context, try uint64) (meet bool) {
	t := w.again.t
	t.Come(try)
	absent := func(r int) bool {
		away, gone := w.job.IsAway(r)
		return away || gone != nil || t.State(r) != nil
	}
	err := t.Wait(ctx, func() (there bool) {
		meet, there = t.Meets(try, absent)
		return there
	})
	if err != nil {
		meet, _ = t.Meets(try, func(int) bool { return true })
	}
	return meet
}

// meet makes the world in which all that are left and new processes meet; with an error it is
// to be abandoned, if there is one.
func (w *World) meet(ctx context.Context, try uint64) (next *World, err error) {
	a := w.again
	c := a.config
	c.try, c.was = try, w.Generation()
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	generation := a.t.View().Generation
	watching.Go(func() {
		_ = a.t.AwaitLoss(ctx, generation)
		cancel()
	})
	if next, err = joinOnce(ctx, c); err != nil {
		return nil, err
	}
	for _, call := range a.repeat {
		if err := call(ctx, next); err != nil {
			return next, err
		}
	}
	if _, err := next.collect(ctx, firstOp, nil); err != nil {
		return next, err
	}
	if len(next.job.Adopt().Ranks) < next.job.Size {
		return next, errAlone
	}
	return next, nil
}

// abandon leaves a world in which this rank does not go on, and lets its new processes know.
func (w *World) abandon() {
	for _, heir := range w.again.heirs {
		w.job.Cede(&heir.Member)
	}
	w.Abort(rdma.HasFailed(w.job.Rank, "a rank or a process that was to join again has ended, and the others have gone on without it"))
	_ = w.Close() // there is nothing in it
}

// inherit makes v again in w, where it is another vector with the same memory.
func (w *World) inherit(ctx context.Context, v *Vector) error {
	if !v.Open {
		v.w.again.refuse("%s has been closed", v)
		return errAlone
	}
	heir := &Vector{arrays: v.arrays, runs: v.runs, rows: v.rows, dense: v.dense, inRows: v.inRows, of: v}
	if w.again.heirs == nil {
		w.again.heirs = map[*Vector]*Vector{}
	}
	w.again.heirs[v] = heir
	return w.makeVector(ctx, heir, v.made, func() {})
}

// made is what a vector was made with.
type made struct {
	name, options, shape string
	bytes                int
}

// makeVector makes v, and again where ranks are back.
func (w *World) makeVector(ctx context.Context, v *Vector, m made, init func()) error {
	w.keepsOut("malt.Vector", afterSync)
	v.made = m
	err := w.makeObject(ctx, &v.Object, v, m.name, m.options, m.bytes, m.shape, init)
	if err == nil {
		w.repeats("malt.Vector", 0, func(ctx context.Context, next *World) error { return next.inherit(ctx, v) })
	}
	return err
}

// replaceable fails for an object of a mode that new processes cannot take up.
func (w *World) replaceable(m mode, vector bool) error {
	if w.again == nil {
		return nil
	}
	if vector && !m.keyed && m.ToAll(w.job.Size) && m.sparse == codec.Dense && !m.fold.Changes() && m.Rule.WaitsForClocks() {
		return nil
	}
	what := "a segment"
	if vector {
		what = "a vector with " + m.agreed()
	}
	return say.Errorf(ErrUnsupported, "%s does not go with on_death=replace", what).
		Try("Take a dense vector on graph=all in bsp or ssp, with fold=mean, sum, min or max; or on_death=continue.")
}

// rejoin takes the place of a rank that has died: it asks those that are left, and meets them,
// as often as that takes.
func rejoin(ctx context.Context, c Config) (*World, error) {
	for {
		met, until, err := auto.Return(ctx, c.transport(), uint64(c.Restart))
		if err != nil {
			said := say.Of(err)
			return nil, said.In("malt.init")
		}
		again := c
		again.try = met.Try
		w, err := joinOnce(until, again)
		lost := until.Err() != nil || core.DeathIn(err) != nil || errors.Is(err, rdma.ErrLeft) || errors.Is(err, ErrLeft) || errors.Is(err, ErrState)
		if err == nil || ctx.Err() != nil || !lost {
			return w, err
		}
	}
}

// largest is that of the numbers which the ranks that are left have told; new processes tell none.
func largest(parts [][]byte) (n uint64) {
	for _, part := range parts {
		if len(part) == 8 {
			n = max(n, binary.LittleEndian.Uint64(part))
		}
	}
	return n
}
