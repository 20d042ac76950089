package vote

// Job is what does not change: how many hosts there are, and the host of each rank. The last
// Witnesses of these are no ranks to the job: each votes for a host without any.
type Job struct {
	Hosts     int
	Of        []int
	Witnesses int
}

// Ranks is how many the job has.
func (j Job) Ranks() int { return len(j.Of) - j.Witnesses }

// Members are the hosts and the ranks of a view. The hosts vote on the next one.
type Members struct {
	Hosts, Ranks Set
}

// Everyone is the first view's.
func (j Job) Everyone() Members {
	return Members{Hosts: Everyone(j.Hosts), Ranks: Everyone(len(j.Of))}
}

// On is the set of the ranks of a host.
func (j Job) On(host int) Set {
	s := NewSet(len(j.Of))
	for rank, at := range j.Of {
		if at == host {
			s.Add(rank)
		}
	}
	return s
}

func (m Members) Equals(o Members) bool {
	return m.Hosts.Equals(o.Hosts) && m.Ranks.Equals(o.Ranks)
}

// View is a view that has been decided.
type View struct {
	Generation uint64 // from 1
	Members
}

// MaxGeneration is the last generation, for which a word of the page has room.
const MaxGeneration = 1<<24 - 1

// Quorum tells whether who, some of the hosts of a view, may decide on the next one: more
// than half of those that have a vote on it, or exactly half where the proposer knows when it
// counts that all the others are dead. Two quorums share a host, unless each of them saw the
// other one dead; and then neither was there to count. Hosts that have left without a vote
// count in neither, whoever knows of it: they have taken part in nothing, and never will.
func Quorum(hosts, who Set, see Sight) bool {
	hosts, dead := hosts.Less(see.Left), see.Dead
	who = who.And(hosts)
	switch twice, all := 2*who.Count(), hosts.Count(); {
	case twice > all:
		return true
	case twice == all:
		return hosts.Less(who).Within(dead)
	}
	return false
}

// Abstains tells whether a rank that has left, and whose last word was that (Voter.Farewell),
// has voted on no view after v, and never will.
func (v View) Abstains(farewell uint64) bool { return farewell > 0 && farewell <= v.Generation }

// Ballot numbers a proposal: round × hosts + host, where hosts is the number of hosts of
// the job, and rounds begin at 1. So a ballot belongs to a host, and 0 is none.
type Ballot uint64

// MaxBallot is the last one, for which a word of the page has room.
const MaxBallot = 1<<26 - 1

// Host is the host to which the ballot belongs.
func (b Ballot) Host(hosts int) int { return int(b % Ballot(hosts)) }

// After is the host's first ballot above b.
func (b Ballot) After(host, hosts int) Ballot {
	n := Ballot(hosts)
	first := max(b/n, 1)*n + Ballot(host)
	if first <= b {
		first += n
	}
	return first
}
