package libmalt

import "encoding/binary"

// A card is the header of a collective call that a rank shows in shared memory,
// behind its array: its length in four bytes, and itself.
const cardFixed = 4

// cardAt is where the card of a vector of n bytes begins: at a cache line of its own.
func cardAt(n int) int { return (n + cutBytes - 1) / cutBytes * cutBytes }

// cardRoom is the memory of rank's card.
func (v *Vector) cardRoom(rank int) []byte {
	return v.shared.Bytes(rank)[cardAt(len(v.data)):]
}

// cardOf is the card of rank. Where the rank is about to change it, it may be anything.
func (v *Vector) cardOf(rank int) []byte {
	b := v.cardRoom(rank)
	n := binary.LittleEndian.Uint32(b)
	return b[cardFixed:][:min(n, cardBytes-cardFixed)]
}

// showCard makes card this rank's.
func (v *Vector) showCard(card []byte) {
	if string(v.cardOf(v.w.rank)) != string(card) {
		b := v.cardRoom(v.w.rank)
		binary.LittleEndian.PutUint32(b, uint32(len(card)))
		copy(b[cardFixed:], card)
	}
}
