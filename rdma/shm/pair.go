package shm

import (
	"errors"
	"fmt"

	"malt/rdma/box"
	"malt/rdma/internal/mem"
)

// pair is a mapping of the two pieces of memory of one or more boxes.
type pair struct {
	control []byte
	slots   *slots
}

// controlOf is the control block of box i.
func (p *pair) controlOf(l box.Layout, i int) []byte {
	n := l.ControlBytes
	return p.control[i*n : (i+1)*n : (i+1)*n]
}

func (p *pair) unmap() error {
	err := mem.Unmap(p.control)
	if p.slots != nil {
		err = errors.Join(err, p.slots.unmap())
	}
	*p = pair{}
	return err
}

// attach maps box i of what a sender announced, of which the sizes must be those of n
// boxes of layout l.
func attach(files []*mem.File, l box.Layout, i, n int) (p pair, err error) {
	if len(files) != 2 || files[0].Size() != n*l.ControlBytes || files[1].Size() != n*l.SlotBytes() {
		sizes := make([]int, len(files))
		for i, f := range files {
			sizes[i] = f.Size()
		}
		return pair{}, fmt.Errorf("memory of sizes %v was announced, expected %d and %d", sizes, n*l.ControlBytes, n*l.SlotBytes())
	}
	if p.control, err = files[0].Map(true); err == nil {
		p.slots, err = mapSlots(files[1], false, small(l, n), i*l.SlotBytes(), l.Stride, l.Slots)
	}
	if err != nil {
		return pair{}, errors.Join(err, p.unmap())
	}
	return p, nil
}
