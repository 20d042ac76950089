package shm

import (
	"errors"
	"fmt"
	"os"

	"malt/rdma/box"
	"malt/rdma/internal/mem"
)

// The size up to which all slots of a box are mapped and populated together.
const (
	// Looking up the limits costs more than so little memory.
	atOnce = 256 << 10
	// The slots of a queue are all used, in turn. The collective calls have such a
	// one: by them ranks tell each other for what there was no memory.
	queueAtOnce = 2 << 20
)

// area is a mapping of a box in a File: its control block, and from the next page on its
// slots. A File of its own has nothing else. That of a Share of the same name has its block
// and words before the box, and is made longer for it: so another rank needs one mapping for
// both.
type area struct {
	box.Layout
	at      int    // where it begins: at a page
	control []byte // to the border of a page
	slots   *slots
	own     []byte // what is mapped for this box alone
	held    *hold  // of another rank
}

// controlPages is the length of the control block, to the border of a page.
func (a *area) controlPages() int { return wholePages(a.ControlBytes) }

func (a *area) size() int { return a.controlPages() + a.SlotBytes() }

// small tells whether all slots are populated together.
func (a *area) small() bool {
	if a.Spec.Mode.Depth() > 0 {
		return a.SlotBytes() <= queueAtOnce
	}
	return a.SlotBytes() <= atOnce
}

// place is where the box lies, for both ends.
func (a *area) place() box.Place {
	p := box.Place{Control: a.control[:a.ControlBytes:a.ControlBytes]}
	if len(a.slots.flat) > 0 { // there is nothing to find
		p.Slot = a.Flat(a.slots.flat)
	} else {
		p.Slot, p.Find = a.slots.slot, a.slots.find
	}
	return p
}

// make maps a new box in f, at the sender.
func (a *area) make(f *mem.File) (err error) {
	mapped := a.controlPages()
	if a.small() {
		mapped = a.size()
	}
	if a.own, err = f.MapFrom(true, a.at, mapped); err != nil {
		return err
	}
	a.control = a.own[:a.controlPages()]
	a.slots = &slots{stride: a.Stride, count: a.Slots, flat: a.own[a.controlPages():], before: a.control}
	return nil
}

// attach maps what a sender announced: a box of layout l, at the end of the File.
func (t *Transport) attach(files []*mem.File, l box.Layout) (*area, error) {
	a := &area{Layout: l}
	sizes := make([]int, len(files))
	for i, f := range files {
		sizes[i] = f.Size()
	}
	if len(files) == 1 {
		a.at = sizes[0] - a.size()
	}
	if len(files) != 1 || a.at < 0 || a.at%os.Getpagesize() != 0 {
		return a, fmt.Errorf("memory of sizes %v was announced, expected %d, behind whole pages", sizes, a.size())
	}
	f, first := files[0], a.at+a.controlPages()
	var err error
	if a.held, err = t.holds.take(f, true, first); err != nil {
		return a, err
	}
	a.control = a.held.bytes[a.at:first:first]
	if a.small() && a.at == 0 {
		a.own, err = f.MapFrom(false, first, l.SlotBytes())
	}
	a.slots = &slots{stride: l.Stride, count: l.Slots, flat: a.own, before: a.control, readOnly: true}
	return a, err
}

// unmap gives everything back; nobody may use any of it.
func (a *area) unmap() error {
	err := mem.Unmap(a.own)
	if a.slots != nil {
		err = errors.Join(err, a.slots.unmap())
	}
	return errors.Join(err, a.held.give())
}

// wholePages is n rounded up to whole pages.
func wholePages(n int) int {
	page := os.Getpagesize()
	return (n + page - 1) / page * page
}
