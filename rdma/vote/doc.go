// Package vote has the rules by which several hosts decide who takes part after a death or
// a cut: Paxos among hosts, as pure values. It does no I/O and reads no clock. Package
// rendezvous keeps what a host has promised and accepted, in memory that its ranks share;
// docs/developers/wire.md has the frames.
//
//	o := vote.Voter{Store: page, Job: job, Host: host} // a rank, which speaks for its host
//	answer, ok := o.Answer(m, see, from)               // to what another host asks
//
//	p, ok := o.Propose(see, nil)                       // a rank that misses somebody
//	send(p.Prepare(see.Lasted))                        // to all hosts of the view but the suspects
//	p.Heed(m, from)                                    // for each promise
//	if p.Ready(see) { send(p.Accept()) }               // to its own host as well
//	p.Heed(m, from)                                    // for each acceptance
//	if v, ok := p.Decided(see); ok { o.Learn(v); tell(v) }
//
// # Views
//
// A view is a set of hosts and ranks with a number, its generation. Ranks on one host need
// no vote: they read each other's words. Hosts learn from each other what the network lets
// through, and a host that is silent may be alive. So each view is decided once, by the
// hosts of the view before, one vote each.
//
//	host 0          host 1          host 2 (silent)
//	  | prepare 3     |               |
//	  |-------------->|               |      generation 2, ballot 3, without host 2
//	  |       promise |               |
//	  |<--------------|               |      host 1 accepts nothing below 3 any more
//	  | accept 3      |               |
//	  |-------------->|               |      hosts 0 and 1
//	  |      accepted |               |
//	  |<--------------|               |      2 of 3: decided
//	  | decided       |               |
//	  |-------------->|- - - - - - - >|      host 2, when it can be reached: it is expelled
//
// A ballot is a number that belongs to one rank of one host. It is taken from the host's
// store by the same step that promises it.
//
// A proposal:
//
//	              all but the suspects have promised,       a quorum has accepted
//	              and they are a quorum
//	preparing ------------------------------------> accepting -----------------> decided
//	  |   ^                                             |
//	  |   | the suspects have changed (Stale)           | refused: a host has promised a
//	  |   | or refused (Beaten): a higher ballot        | higher ballot (Beaten)
//	  +---+<--------------------------------------------+
//
// What is proposed is what a promiser has accepted under the highest ballot: an earlier
// proposer may have died after it was decided. If nobody has accepted anything, it is the
// hosts that promised, with their ranks that live.
//
// A host, on one generation:
//
//	          promises b                    accepts b
//	none ---------------> promised b ---------------------> accepted b
//	                        |    ^                             |
//	                        +----+ promises a higher one  <----+ keeps what it has accepted
//
// When the host learns the view, whatever it had promised on it is over. Ballots, promises
// and acceptances count in their own generation only. A message about another generation
// than the next is answered with the view that the host knows. An asker that is itself
// later answers that with its own view, which tells the host.
//
// # Quorum
//
// A decision takes more than half of the hosts of the view before, or exactly half if the
// proposer itself, when it counts, knows that all the others are dead. Two groups of more
// than half share a host. Half and more than half share one, too. Two halves that do not share
// one would each have to know the other one dead, so neither was there to decide. After a
// crash one of two hosts goes on alone; after a silence neither does, nor does either half of
// an even number. A host without ranks can be the vote that is missing.
//
// A host of which all ranks have left in good order votes no more, and the others might be too
// few without it. It is not counted among the hosts, neither for nor against, if none of its
// ranks has promised anything on the next view up to its end: each says so when it leaves
// (Farewell), with the view that it knew. A host that has promised counts as dead: it may have
// accepted a view of which the proposer has told nobody else, or it may have been needed for a
// promise that another proposer goes by. All quorums lie among the hosts that are never left
// out of the count, and each is at least half of these.
//
// Rules that fail: a casting vote for the lowest host, together with the rule for the dead,
// lets both sides go on, one after the other. So do half of the hosts without certainty, and
// a majority of the hosts that live. tests/go/mutations_votes_test.go shows each.
//
// # Whom to leave out
//
// A host that acknowledges nothing is doubted, and with the dead it is a suspect. A host that
// is asked and hears a suspect objects (Heard), until the proposer has doubted for as long
// as Unreachable; for twice as long where the suspect is the lower one of the two. So of a
// pair that cannot talk the higher one goes, and hosts that can all talk are not stopped by
// a doubt that passes. The proposer tells for how long it has doubted, so that a host's
// answer depends on nothing that another of its ranks knows.
//
// The lowest host proposes first, the others 50 ms later each (Turn). A proposal that was
// refused begins again under a higher ballot, until one view is decided. Otherwise a
// proposer that dies, or a cut that heals, could stop all.
//
// # Confirm
//
// A Question asks the hosts of a view whether they have accepted a later one. If more than
// half say no, none had been decided when the question was asked, because one of them takes
// part in each decision. It matters that a host that has accepted a view, without knowing
// whether it was decided, does not confirm; that the hosts of this view are asked, not of the
// one before; and that answers carry the number of the question.
//
// # Caveats
//
// Sight.Dead is for what is certain. A firewall that rejects with a reset, for a host that
// lives, has both halves of a view go on: rules between hosts must drop. Where more than
// half is needed a false death does no harm.
//
// A doubt is measured in looks that are at most 0.2 s apart: a rank that was stopped does not
// count the time in which it could not have heard.
//
// # Checks
//
// Under the tag explore the real code runs through every order of messages: two, three and
// five hosts, with messages that are lost, repeated and late, deaths at each step, cuts that
// heal, and false refusals. The ranks of a host and its page run through every order of their
// accesses in rdma/rendezvous. Proposers propose at any time and suspect anybody there, so
// what is decided does not depend on clocks.
package vote
