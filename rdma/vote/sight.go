package vote

import "time"

// Sight is what a rank sees of the hosts at a moment: all that the rules know of time and
// of deaths.
type Sight struct {
	Living      Set           // ranks of this host that live
	Dead        Set           // hosts that are dead for certain, or have left; grows only
	Left        Set           // of these, hosts that have left, and abstain on the view voted on (View.Abstains)
	Doubted     Set           // hosts that acknowledge nothing
	Lasted      time.Duration // of the shortest of these doubts
	Unreachable time.Duration // for how long a host may be doubted that others hear
}

// Suspects are the hosts of a view that the next one is to be without.
func (see Sight) Suspects(v View) Set { return see.Dead.Or(see.Doubted).And(v.Hosts) }

// objects are the suspects of a proposer, host from, that this host hears, and for the sake
// of which it does not promise yet. A proposer that goes on doubting gets its way: later
// where the suspect is the lower one of the two, so that the higher one of a pair that
// cannot talk goes, whichever of them is first to propose. A host that is itself a suspect
// never agrees. host is this one.
func (see Sight) objects(m Message, from, host int) Set {
	heard := m.Hosts.Less(see.Dead).Less(see.Doubted)
	for s := range heard.All() {
		limit := see.Unreachable
		if s < from {
			limit *= 2
		}
		if s != host && m.Lasted >= limit {
			heard.Remove(s)
		}
	}
	return heard
}

// Doubts is for how long a rank has doubted each host.
type Doubts struct {
	lasted []time.Duration
	at     time.Time
}

// atOnce is the most that may pass between two looks. A rank that was stopped for longer
// cannot tell whether the host was silent meanwhile.
const atOnce = 200 * time.Millisecond

// Look is told which hosts are doubted now. A host that is heard in between begins anew.
func (d *Doubts) Look(now time.Time, doubted Set) {
	if d.lasted == nil {
		d.lasted, d.at = make([]time.Duration, 64*len(doubted)), now
	}
	passed := min(now.Sub(d.at), atOnce)
	d.at = now
	for host := range d.lasted {
		switch {
		case !doubted.Has(host):
			d.lasted[host] = -1
		case d.lasted[host] < 0:
			d.lasted[host] = 0
		default:
			d.lasted[host] += passed
		}
	}
}

// Lasted is the shortest of some doubts; 0 where one of the hosts is not doubted.
func (d *Doubts) Lasted(hosts Set) time.Duration {
	shortest := time.Duration(-1)
	for host := range hosts.All() {
		if l := max(d.lasted[host], 0); shortest < 0 || l < shortest {
			shortest = l
		}
	}
	return max(shortest, 0)
}

// apart is the time between the proposals of two hosts: more than a proposal takes.
const apart = 50 * time.Millisecond

// Turn is how long a host waits with its proposal: the lowest one that is not a suspect
// goes first. So long it waits again, and once more, after it was beaten, for the one that
// has beaten it.
func Turn(v View, suspects Set, host int, beaten bool) time.Duration {
	place := 0
	for h := range v.Hosts.Less(suspects).All() {
		if h < host {
			place++
		}
	}
	if beaten {
		place++
	}
	return time.Duration(place) * apart
}
