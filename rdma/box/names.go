//go:build explore

package box

import "fmt"

// Names gives the words of a box names for the traces of package explore; each
// begins with prefix. word gets the memory that begins with the word.
func (l Layout) Names(control []byte, slot func(int) []byte, prefix string, word func(b []byte, name string)) {
	name := func(off int, format string, args ...any) { word(control[off:], prefix+fmt.Sprintf(format, args...)) }
	name(offClock, "clock")
	name(offLeft, "left")
	name(offHead, "head")
	name(offSenderBell, "sender's bell")
	name(offView, "view")
	for r := range l.Readers {
		at := offReaders + r*readerBytes
		name(at+offLatest, "latest[%d]", r)
		name(at+offLatest+8, "odd latest[%d]", r)
		name(at+offPublished, "published[%d]", r)
		name(at+offFirst, "first[%d]", r)
		name(at+offLast, "last[%d]", r)
		name(at+offBegun, "begun[%d]", r)
		name(at+offPin, "pin[%d]", r)
		name(at+offAck, "ack[%d]", r)
		name(at+offReaderBell, "bell of reader %d", r)
	}
	for i := range l.Slots {
		for off := 0; off+8 <= l.Spec.Bytes; off += 8 {
			word(slot(i)[headerBytes+off:], fmt.Sprintf("%sslot %d, byte %d", prefix, i, off))
		}
	}
}
