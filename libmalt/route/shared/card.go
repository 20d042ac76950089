package shared

import (
	"encoding/binary"

	"malt/libmalt/internal/core"
)

// A card is the header of a collective call that a rank shows in shared memory, after
// its array: four bytes of length, and the header.
const cardFixed = 4

// cardBytes is the most that a card takes: room for some 190 objects.
var cardBytes = 4 << 10

// cardAt is where the card of an array of n bytes begins: at a cache line of its own.
func cardAt(n int) int { return (n + core.CutBytes - 1) / core.CutBytes * core.CutBytes }

// cardRoom is the memory of rank's card.
func (r *Route) cardRoom(rank int) []byte { return r.shared.Bytes(rank)[cardAt(r.bytes):] }

// cardOf is the card of rank. While the rank changes it, it may be anything.
func (r *Route) cardOf(rank int) []byte {
	b := r.cardRoom(rank)
	n := binary.LittleEndian.Uint32(b)
	return b[cardFixed:][:min(int(n), cardBytes-cardFixed)]
}

// showCard makes card this rank's.
func (r *Route) showCard(card []byte) {
	if string(r.cardOf(r.rank)) != string(card) {
		b := r.cardRoom(r.rank)
		binary.LittleEndian.PutUint32(b, uint32(len(card)))
		copy(b[cardFixed:], card)
	}
}
