package core

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"malt/internal/say"
)

// A place is where in its program a rank made its last call, in the words of the
// face that called: for Python "train.py:12: v.sync()". The others read it when a
// wait of theirs gets long, or when the ranks are found in different calls, so
// telling it costs some stores, and asking for it nothing at the rank asked about.
//
// It lies in the rank's words as a count, with the length in its low bits, and
// the text. While the text is being changed the count is odd; a reader that sees
// an odd count, or two different ones, goes without.
const (
	placeWords = 20
	maxPlace   = 8 * placeWords
	lengthBits = 8
	lengthMask = 1<<lengthBits - 1
)

// At tells the other ranks where in its program this rank is. Text that is too
// long is cut.
func (m *Marks) At(place string) {
	if len(place) > maxPlace {
		place = place[:maxPlace]
	}
	if !m.telling.TryLock() {
		return // another thread tells its own
	}
	defer m.telling.Unlock()
	m.Trace.place.set(place)
	count := m.told + 1
	m.Put(markPlace, count<<lengthBits)
	var b [maxPlace]byte
	copy(b[:], place)
	for i := 0; 8*i < len(place); i++ {
		m.Put(markPlace+1+i, binary.LittleEndian.Uint64(b[8*i:]))
	}
	m.told = count + 1
	m.Put(markPlace, m.told<<lengthBits|uint64(len(place)))
}

// Place is where rank is in its program, or was when it ended; "" where it has
// not told, or is just telling. What it wrote is not believed: it may be
// anything, and is about to stand in a message.
func (m *Marks) Place(rank int) string {
	before, _ := m.Get(rank, markPlace) // of a rank that has ended it is the last
	length := before & lengthMask
	if before>>lengthBits&1 == 1 || length == 0 || length > maxPlace {
		return ""
	}
	var b [maxPlace]byte
	for i := 0; 8*i < int(length); i++ {
		v, _ := m.Get(rank, markPlace+1+i)
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	if after, _ := m.Get(rank, markPlace); after != before {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(b[:length]))
}

// InPlace is a line on what rank does, with its place if that is known: the program's
// own words as far as there is room.
func (m *Marks) InPlace(rank int, what string) string {
	line := fmt.Sprintf("rank %d: %s", rank, say.Brief(what, 90))
	place := m.Place(rank)
	if place == "" {
		return line
	}
	if utf8.RuneCountInString(line+place) > say.Width-3 {
		place, _, _ = strings.Cut(place, ": ")
	}
	return line + " (" + place + ")"
}
