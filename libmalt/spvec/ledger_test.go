package spvec

import (
	"math/rand/v2"
	"testing"
)

// TestLedgerLosesNothing plays a sender and readers that read at random moments,
// messages to some of them included: after each reading a reader has the sender's
// values of that message, and folds no row twice in the same value.
func TestLedgerLosesNothing(t *testing.T) {
	const rows, readers, steps = 30, 3, 400
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := Shape{Rows: rows, Width: 1, Elem: 8}
		l := new(Ledger)
		data := zeroed(s.Bytes())
		var box [readers]struct { // the newest message for a reader
			m    []byte
			kind Kind
			seq  uint64
			data []byte
		}
		var read [readers]uint64
		var has [readers][]byte
		for i := range has {
			has[i] = zeroed(s.Bytes())
		}
		for seq := uint64(1); seq <= steps; seq++ {
			changed := some(r, s, 0.1)
			for _, row := range changed {
				set(s, data, int(row), float64(seq)) // a value that comes once
			}
			to := r.IntN(1 << readers)
			l.Add(changed, seq)
			least, all := seq, seq
			for i := range readers {
				if all = min(all, read[i]); to>>i&1 == 1 {
					least = min(least, read[i])
				}
			}
			l.Drop(all)
			list, ages := l.Since(seq, least)
			m, kind := message(s, data, list, ages)
			for i := range readers {
				if to>>i&1 == 1 {
					box[i].m, box[i].kind, box[i].seq, box[i].data = m, kind, seq, append([]byte{}, data...)
				}
			}
			for i := range readers {
				if r.IntN(3) > 0 || box[i].seq <= read[i] {
					continue
				}
				var u Update
				if err := u.Decode(box[i].kind, box[i].m, s, box[i].seq, read[i]); err != nil {
					t.Fatal(err)
				}
				for _, row := range u.mentioned(s) {
					if get(s, has[i], int(row)) == get(s, box[i].data, int(row)) {
						t.Fatalf("seed %d: reader %d gets row %d twice", seed, i, row)
					}
				}
				u.Expand(has[i], s)
				read[i] = box[i].seq
				for row := range rows {
					if got, want := get(s, has[i], row), get(s, box[i].data, row); got != want {
						t.Fatalf("seed %d: reader %d has %v in row %d after message %d, want %v", seed, i, got, row, read[i], want)
					}
				}
			}
		}
	}
}

func TestLedgerForgets(t *testing.T) {
	l := new(Ledger)
	l.Add([]uint32{1, 3}, 1)
	l.Add([]uint32{3, 4}, 2)
	if rows, ages := l.Since(2, 0); len(rows) != 3 || ages[0] != 1 || ages[1] != 0 {
		t.Errorf("rows %v of ages %v, want 1 3 4 of 1 0 0", rows, ages)
	}
	if rows, ages := l.Since(2, 1); len(rows) != 2 || ages != nil {
		t.Errorf("since message 1: rows %v of ages %v, want 3 4, all of 0", rows, ages)
	}
	l.Drop(1)
	if rows, _ := l.Since(2, 0); len(rows) != 2 {
		t.Errorf("dropped up to 1: rows %v, want 3 4", rows)
	}
	l.Clear()
	if rows, _ := l.Since(3, 0); len(rows) != 0 {
		t.Errorf("cleared: rows %v", rows)
	}
}
