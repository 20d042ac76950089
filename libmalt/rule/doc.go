// Package rule decides what a scatter and a gather may do: whether they may go on, for whom
// they wait, and which updates a gather takes. It has only values: no clocks, no transport,
// no waiting. The code that carries out a call looks at the other ranks, asks this package,
// and waits.
//
//	r, _ := rule.Parse("ssp:2")
//	r.Boxes()             // rdma.Newest: what its boxes keep
//	r.Waits(7, 4)         // true: 4 < 7-2
//	r.Takes(7, 5)         // true: 5 >= 7-2
//	rule.About(rule.Away) // rule.Without
//
// In a replay of a recorded run a Replay decides instead of async and ssp.
//
// Sources: bsp and ssp from MALT section 3.3 and "Boosting Machine Learning with
// Weakly Consistent Collectives"; notify-ack from MALT-2.
package rule
