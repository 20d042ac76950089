package rdmatest

import (
	"encoding/binary"
	"fmt"

	"malt/rdma"
)

// pattern fills b with bytes that depend on sender, clock and place, so that any
// mixture of two updates shows.
func pattern(b []byte, sender int, clock uint64) { part(b, sender, clock, 0) }

// intact fails unless u is, byte for byte, what sender scattered at its clock.
func intact(u rdma.Update, sender, length int) error {
	if u.Data == nil {
		return fmt.Errorf("seq %d of rank %d has no data", u.Seq, sender)
	}
	if len(u.Data) != length || int(u.Tag) != sender {
		return fmt.Errorf("seq %d: %d bytes with tag %d, expected %d of rank %d", u.Seq, len(u.Data), u.Tag, length, sender)
	}
	var want [4096]byte
	x := u.Data
	for at := 0; at < len(x); at += len(want) {
		n := min(len(want), len(x)-at)
		part(want[:n], sender, u.Clock, at)
		if string(want[:n]) != string(x[at:at+n]) {
			return fmt.Errorf("seq %d clock %d of rank %d is torn: bytes %d to %d are not its own", u.Seq, u.Clock, sender, at, at+n)
		}
	}
	return nil
}

// part is pattern from byte at on, a multiple of 8.
func part(b []byte, sender int, clock uint64, at int) {
	x := uint64(sender+1)<<48 ^ clock*0x9e3779b97f4a7c15
	x += uint64(at/8) * 0x0101010101010101
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, x)
		b = b[8:]
		x += 0x0101010101010101
	}
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
}

// stamp is what goes with a pattern.
func stamp(sender int, clock uint64) rdma.Stamp {
	return rdma.Stamp{Clock: clock, Age: clock / 2, Tag: uint64(sender), Kind: uint16(clock), Weight: 1 / float64(clock+1)}
}

// put sends the pattern of sender and clock as n bytes; full is true when a
// reader has yet to release the slot.
func put(out rdma.Outbox, sender int, clock uint64, n int, to []int) (full bool, err error) {
	b, err := out.Begin()
	if err != nil || b == nil {
		return b == nil, err
	}
	pattern(b[:n], sender, clock)
	return false, out.Commit(n, stamp(sender, clock), to)
}

// mustPut is put that must find a slot.
func (j *job) mustPut(out rdma.Outbox, sender int, clock uint64, n int, to []int) {
	j.Helper()
	full, err := put(out, sender, clock, n, to)
	if err != nil || full {
		j.Fatalf("scatter of clock %d: full %v, error %v", clock, full, err)
	}
}

// take is Next that must give the intact update of that clock.
func (j *job) take(in rdma.Inbox, clock uint64, n int) rdma.Update {
	j.Helper()
	j.settle()
	u, ok, err := in.Next()
	if err != nil || !ok {
		j.Fatalf("Next: ok %v, error %v; expected clock %d", ok, err, clock)
	}
	if u.Stamp != stamp(in.From(), clock) {
		j.Fatalf("got stamp %+v, expected %+v", u.Stamp, stamp(in.From(), clock))
	}
	if err := intact(u, in.From(), n); err != nil {
		j.Fatal(err)
	}
	return u
}

// none is Next that must have nothing.
func (j *job) none(in rdma.Inbox) {
	j.Helper()
	j.settle()
	if u, ok, err := in.Next(); ok || err != nil {
		j.Fatalf("Next: got seq %d clock %d, error %v; expected nothing", u.Seq, u.Clock, err)
	}
}
