package rendezvous

import (
	"malt/rdma/internal/mem"
	"malt/rdma/vote"
)

// On several hosts a view is decided by votes (package vote). What this host has promised
// and accepted is one word of the page, so that each of its ranks can speak for it:
//
//	generation<<40 | ballot promised<<14 | rank<<2 | record<<1 | accepted
//
// With accepted set, that record of that rank has the ballot and the members that the host
// has accepted. A word of an earlier generation counts as none.
//
//	look: w = word; copy the record that it names; word != w: again
//	swap: fill a record of the own rank that w does not name; CAS(word, w, next)
//
// The word only grows: by generation, by the ballot promised, and by accepting under that.
// So it never becomes again what it was, and a rank that finds the same word twice has copied
// what it means. A record of a rank is named by that rank's swap alone: it stays free while
// it is filled. The host answers after the swap. A rank that is killed before it has done
// nothing; after it, the host has promised or accepted without having said so, which is as
// if the answer were lost. The next rank that is asked answers.

const (
	voteBits     = 40 // below the generation
	promisedBits = 14 // below the ballot promised
	acceptedBit  = 1
)

// vote is changed by compare-and-swap, by any rank of the host that is asked, or proposes.
func (p page) vote() *mem.Word { return mem.WordAt(p, offVote) }

// record is word i of one of a rank's records: the ballot, from 8 on the hosts, and then the
// ranks. Written by the rank, while vote does not name it; before the swap, so that whoever
// sees the word sees them.
func (p page) record(rank, which, i int) *mem.Word {
	return p.member(rank, offRecords+which*recordBytes+8*i)
}

const (
	recordHosts = 8
	recordRanks = recordHosts + setBytes/8
)

// votes is how a rank speaks for its host: a vote.Store. One goroutine at a time uses it.
type votes struct {
	page page
	rank int
	job  vote.Job
	news func() // after it has made another view the page's; nil: nothing
}

// View is what the page says, of the whole job.
func (s *votes) View() vote.View {
	for {
		v := s.page.view().Load()
		if v>>viewBits == 1 {
			return vote.View{Generation: 1, Members: s.job.Everyone()}
		}
		if m := s.none(); s.page.members(v, m, nil) {
			return vote.View{Generation: v >> viewBits, Members: m}
		}
	}
}

// none is room for members.
func (s *votes) none() vote.Members {
	return vote.Members{Hosts: vote.NewSet(s.job.Hosts), Ranks: vote.NewSet(len(s.job.Of))}
}

// Learn makes a decided view the page's, and lets everybody know. It does not matter which
// rank does: all have the same one. One that is killed in between is itself noticed by every
// other, each of which rings its own bells; one that is stopped there leaves the sleepers to
// those that look now and then.
func (s *votes) Learn(v vote.View) {
	for {
		now := s.page.view().Load()
		if now>>viewBits >= v.Generation {
			return
		}
		if s.page.install(now, s.rank, v.Generation, v.Members) {
			if s.news != nil {
				s.news()
			}
			return
		}
	}
}

// Look is what the host has promised and accepted on that generation.
func (s *votes) Look(generation uint64) (a vote.Acceptor, at uint64, ok bool) {
	for {
		w := s.page.vote().Load()
		if on := w >> voteBits; on != generation {
			return vote.Acceptor{Generation: generation}, w, on < generation
		}
		a := vote.Acceptor{Generation: generation, Promised: vote.Ballot(w >> promisedBits & vote.MaxBallot)}
		if w&acceptedBit == 0 {
			return a, w, true
		}
		rank, which := recordOf(w)
		a.Accepted, a.Members = vote.Ballot(s.page.record(rank, which, 0).Load()), s.none()
		for i := range a.Members.Hosts {
			a.Members.Hosts[i] = s.page.record(rank, which, recordHosts+i).Load()
		}
		for i := range a.Members.Ranks {
			a.Members.Ranks[i] = s.page.record(rank, which, recordRanks+i).Load()
		}
		if s.page.vote().Load() == w {
			return a, w, true
		}
	}
}

// Swap puts a in the place of what Look has found with at.
func (s *votes) Swap(at uint64, a vote.Acceptor) bool {
	next := a.Generation<<voteBits | uint64(a.Promised)<<promisedBits
	switch {
	case a.Accepted == 0:
	case a.Accepted < a.Promised: // it has promised: what it had accepted stays where it is
		next |= at & (1<<promisedBits - 1)
	default:
		which := 0
		if rank, named := recordOf(at); at&acceptedBit != 0 && rank == s.rank && named == 0 {
			which = 1
		}
		s.page.record(s.rank, which, 0).Store(uint64(a.Accepted))
		for i, w := range a.Members.Hosts {
			s.page.record(s.rank, which, recordHosts+i).Store(w)
		}
		for i, w := range a.Members.Ranks {
			s.page.record(s.rank, which, recordRanks+i).Store(w)
		}
		next |= uint64(s.rank)<<2 | uint64(which)<<1 | acceptedBit
	}
	return s.page.vote().CompareAndSwap(at, next)
}

// recordOf is the record that a word names.
func recordOf(w uint64) (rank, which int) {
	return int(w >> 2 & (1<<(promisedBits-2) - 1)), int(w >> 1 & 1)
}
