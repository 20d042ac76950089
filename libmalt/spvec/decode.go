package spvec

import "encoding/binary"

// Update is the rows of a message that its reader is to fold.
type Update struct {
	All    bool     // all rows; Index and place are empty
	Index  []uint32 // ascending; where not All, never nil
	values []byte   // of the message
	place  []uint32 // which row of values belongs to Index[i]; empty: the i-th

	// Of the sender: what it counts in a mean.
	Weight float64
	Rank   int
}

// Decode reads message number seq for a reader that has read number read last.
// It checks everything: that indices ascend and are rows, and all lengths. What
// it returns cannot change afterwards, but for the values.
func (u *Update) Decode(kind Kind, message []byte, s Shape, seq, read uint64) error {
	*u = Update{Index: u.Index[:0], place: u.place[:0], Weight: 1}
	if kind == Dense {
		if len(message) != s.Bytes() {
			return corrupt("%d bytes of all %d rows, expected %d", len(message), s.Rows, s.Bytes())
		}
		u.All, u.values = true, message
		return nil
	}
	if u.Index == nil {
		u.Index = []uint32{}
	}
	if kind > AgedDense {
		return corrupt("kind %d is not known", kind)
	}
	if len(message) < countBytes {
		return corrupt("%s in %d bytes", kind, len(message))
	}
	count := binary.NativeEndian.Uint64(message)
	if count > uint64(s.Rows) {
		return corrupt("%s: %d of a vector of %d", kind, count, s.Rows)
	}
	n, size := int(count), s.RowBytes()
	if kind == AgedDense {
		n = s.Rows
	}
	lists := 4 * n
	if kind == Aged {
		lists = 8 * n
	}
	at := roundUp(countBytes + lists)
	if want := at + n*size; len(message) != want {
		return corrupt("%s: %d rows in %d bytes, expected %d", kind, n, len(message), want)
	}
	u.values = message[at:]
	first := view[uint32](message[countBytes : countBytes+4*n])
	if kind == AgedDense {
		for r, age := range first {
			if age == notMentioned {
				continue
			}
			if uint64(age) >= seq {
				return corrupt("row %d of age %d in message %d", r, age, seq)
			}
			if seq-uint64(age) > read {
				u.Index, u.place = append(u.Index, uint32(r)), append(u.place, uint32(r))
			}
		}
		return nil
	}
	u.Index = append(u.Index, first...)
	if err := ascending(u.Index, s.Rows); err != nil {
		u.Index = u.Index[:0]
		return err
	}
	if kind == Aged {
		return u.skip(view[uint32](message[countBytes+4*n:countBytes+8*n]), seq, read)
	}
	return nil
}

func ascending(rows []uint32, most int) error {
	next := uint64(0) // the least that the row may be
	for i, r := range rows {
		if uint64(r) < next {
			return corrupt("row %d stands behind row %d", r, rows[i-1])
		}
		next = uint64(r) + 1
	}
	if next > uint64(most) {
		return corrupt("row %d of a vector of %d", next-1, most)
	}
	return nil
}

// skip leaves out the rows that the reader has folded.
func (u *Update) skip(ages []uint32, seq, read uint64) error {
	kept := 0
	for i, age := range ages {
		if uint64(age) >= seq {
			return corrupt("row %d of age %d in message %d", u.Index[i], age, seq)
		}
		if seq-uint64(age) > read {
			u.Index[kept] = u.Index[i]
			u.place = append(u.place, uint32(i))
			kept++
		}
	}
	if u.Index = u.Index[:kept]; kept == len(ages) {
		u.place = u.place[:0]
	}
	return nil
}

// Len is the number of rows.
func (u *Update) Len(s Shape) int {
	if u.All {
		return s.Rows
	}
	return len(u.Index)
}

// Values are those of Index one behind the other, or of all rows: the message's
// own memory, or, where rows of it are skipped, a copy that room is made to hold.
func (u *Update) Values(room *[]byte, s Shape) []byte {
	if u.All || len(u.Index)*s.RowBytes() == len(u.values) {
		return u.values
	}
	*room = (*room)[:0]
	for _, p := range u.place {
		at := int(p) * s.RowBytes()
		*room = append(*room, u.values[at:at+s.RowBytes()]...)
	}
	return *room
}

// Expand writes the rows over dst, a whole vector, which is aligned to 8 bytes.
func (u *Update) Expand(dst []byte, s Shape) {
	switch {
	case u.All:
		copy(dst, u.values)
	case len(u.place) == 0:
		spreads.rows(s, dst, nil, u.values, u.Index)
	default:
		size := s.RowBytes()
		for i, r := range u.Index {
			p := int(u.place[i])
			copy(dst[int(r)*size:(int(r)+1)*size], u.values[p*size:])
		}
	}
}
