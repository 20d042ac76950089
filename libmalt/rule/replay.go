package rule

// Replay is the rule of an object that does in a replay what it has done in a recorded run. It
// stands in for async and ssp, where the same program may fold other updates the next time.
//
// A gather waits for the updates that the recorded gather has folded, and takes no other ones.
// It reads each as soon as it comes, before it has the others. A scatter overwrites the update
// before it: so it waits until that has been read by those which have folded it in the recorded
// run. There a reader had read it before it was overwritten, and a sender had sent it before it
// was read. So each waits only for what was earlier in the recorded run: some rank can
// always go on.
type Replay struct {
	Gathers []Gathered // of this rank, that are to come
	Readers [][]uint64 // by rank: clocks of this rank's updates that it folds, ascending
}

// Gathered is what one gather has folded: the number of its object, the clock of the reader, then
// rank and clock of each update.
type Gathered []uint64

// Next is what the next gather folds; false: the recording ends before it.
func (p *Replay) Next() (Gathered, bool) {
	if len(p.Gathers) == 0 {
		return nil, false
	}
	return p.Gathers[0], true
}

// Gathered says that it has.
func (p *Replay) Gathered() { p.Gathers = p.Gathers[min(1, len(p.Gathers)):] }

// Reads tells whether reader folds the update of that clock. The caller asks for one clock after
// the other.
func (p *Replay) Reads(reader int, clock uint64) bool {
	list := &p.Readers[reader]
	for len(*list) > 0 && (*list)[0] < clock {
		*list = (*list)[1:]
	}
	return len(*list) > 0 && (*list)[0] == clock
}

// Of is the clock of the update of rank in it; 0: there is none.
func (g Gathered) Of(rank int) uint64 {
	for i := 2; i < len(g); i += 2 {
		if g[i] == uint64(rank) {
			return g[i+1]
		}
	}
	return 0
}
