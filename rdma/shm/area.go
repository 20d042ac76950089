package shm

import (
	"errors"
	"fmt"
	"os"

	"malt/rdma/box"
	"malt/rdma/internal/mem"
)

// area is where the boxes of one Publish lie in a File: their control blocks, one behind
// the other, and from the next page on the slots of all of them. A File of their own has
// nothing else. That of a Share of the same name has its block and words before it, and is
// made longer for them: so another rank needs one mapping for both.
type area struct {
	box.Layout
	at int // where it begins: at a page
	n  int // boxes
}

// controls is the length of the control blocks, to the border of a page.
func (a *area) controls() int { return wholePages(a.n * a.ControlBytes) }

func (a *area) size() int { return a.controls() + a.n*a.SlotBytes() }

// small tells whether all slots are populated together.
func (a *area) small() bool {
	most := atOnce
	if a.Spec.Mode.Depth() > 0 {
		most = queueAtOnce
	}
	return a.n*a.SlotBytes() <= most
}

// boxes is a mapping of an area.
type boxes struct {
	area
	control []byte // of all, to the border of a page
	slots   *slots
	own     []byte // what is mapped for these boxes alone
	held    *hold  // of another rank
}

// controlOf is the control block of box i.
func (b *boxes) controlOf(i int) []byte {
	n := b.ControlBytes
	return b.control[i*n : (i+1)*n : (i+1)*n]
}

// make maps a new area in f, at the sender.
func (b *boxes) make(f *mem.File) (err error) {
	mapped := b.controls()
	if b.small() {
		mapped = b.size()
	}
	if b.own, err = f.MapFrom(true, b.at, mapped); err != nil {
		return err
	}
	b.control = b.own[:b.controls()]
	b.slots = &slots{stride: b.Stride, count: b.n * b.Slots, flat: b.own[b.controls():], before: b.control}
	return nil
}

// attach maps box i of what a sender announced, of which the size must be that of n boxes
// of layout l, at the end of the File.
func (t *Transport) attach(files []*mem.File, l box.Layout, i, n int) (*boxes, error) {
	b := &boxes{area: area{Layout: l, n: n}}
	sizes := make([]int, len(files))
	for i, f := range files {
		sizes[i] = f.Size()
	}
	if len(files) == 1 {
		b.at = sizes[0] - b.size()
	}
	if len(files) != 1 || b.at < 0 || b.at%os.Getpagesize() != 0 {
		return b, fmt.Errorf("memory of sizes %v was announced, expected %d, behind whole pages", sizes, b.size())
	}
	f, first := files[0], b.at+b.controls()
	var err error
	if b.held, err = t.holds.take(f, true, first); err != nil {
		return b, err
	}
	b.control = b.held.bytes[b.at:first:first]
	b.slots = &slots{stride: l.Stride, count: l.Slots, before: b.control, skip: i * l.SlotBytes(), readOnly: true}
	if b.small() && b.at == 0 {
		skip := b.slots.skip % os.Getpagesize()
		if b.own, err = f.MapFrom(false, first+b.slots.skip-skip, skip+l.SlotBytes()); err == nil {
			b.slots.flat = b.own[skip:]
		}
	}
	return b, err
}

// unmap gives everything back; nobody may use any of it.
func (b *boxes) unmap() error {
	err := mem.Unmap(b.own)
	if b.slots != nil {
		err = errors.Join(err, b.slots.unmap())
	}
	return errors.Join(err, b.held.give())
}

// wholePages is n rounded up to whole pages.
func wholePages(n int) int {
	page := os.Getpagesize()
	return (n + page - 1) / page * page
}
