package shm

import (
	"errors"
	"fmt"

	"malt/rdma/box"
	"malt/rdma/internal/mem"
)

// pair is a mapping of the two pieces of memory of one or more boxes.
type pair struct{ control, slots []byte }

// box is the part of box i.
func (p *pair) box(l box.Layout, i int) (control, slots []byte) {
	return part(p.control, i, l.ControlBytes), part(p.slots, i, l.SlotBytes())
}

func part(b []byte, i, n int) []byte { return b[i*n : (i+1)*n : (i+1)*n] }

func (p *pair) unmap() error {
	err := errors.Join(mem.Unmap(p.control), mem.Unmap(p.slots))
	*p = pair{}
	return err
}

// attach maps what a sender announced, of which the sizes must be those of n
// boxes of layout l.
func attach(files []*mem.File, l box.Layout, n int) (p pair, err error) {
	if len(files) != 2 || files[0].Size() != n*l.ControlBytes || files[1].Size() != n*l.SlotBytes() {
		sizes := make([]int, len(files))
		for i, f := range files {
			sizes[i] = f.Size()
		}
		return pair{}, fmt.Errorf("memory of sizes %v was announced, expected %d and %d", sizes, n*l.ControlBytes, n*l.SlotBytes())
	}
	if p.control, err = files[0].Map(true); err == nil {
		p.slots, err = files[1].Map(false)
	}
	if err != nil {
		return pair{}, errors.Join(err, p.unmap())
	}
	return p, nil
}
