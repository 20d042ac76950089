// Package filter says which of the rows that have changed are worth sending.
//
//	f, err := filter.Parse("dvf:0.1")
//	rows = f.Due(rows, distances, shape, clock, false)
//
// A sender compares its rows with the values that it sent last. A filter holds back the difference, so it
// needs no memory of its own: a row that is held back is compared again when
// the next message is due, and goes once it is far enough. At the sender's clock t, of a vector
// of d elements:
//
//	            a row goes when                                 bound of what is held back
//	dvf:D       an element is more than D/√t away               each element: D/√t
//	dvf:D:U     U instead of D while a receiver is late         each element: U/√t
//	dvf-l2:D    it is not among the smallest, whose squares     length of all: D·√(d/t), with
//	            add up to at most D²·d/t                        the fewest rows that have it
//	top:P%      it is among the P % that are farthest away      none
//
// A receiver is late that has not taken the last message when this one is due. A row whose
// distance is infinite or not a number always goes. With D = 0, and with 100 %, all rows go.
//
// The rules are those of Parameter Flow (DVF: filtering by the distance to the value that was
// sent), with what its Lemma 1 needs: clocks begin at 1, and what receivers see at clock t is
// what was held back at t - 1.
package filter
