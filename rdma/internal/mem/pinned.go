package mem

// Pinned is memory that a network card may be given: it does not move, and a forked child has none
// of it, so that no page is copied at a write while the card goes on with the other copy.
type Pinned struct{ b []byte }

// NewPinned makes n bytes of it, zeroed.
func NewPinned(n int) (Pinned, error) {
	f, err := NewFile("malt-pinned", n)
	if err != nil {
		return Pinned{}, err
	}
	defer f.Close()
	b, err := f.Map(true)
	return Pinned{b}, err
}

// Bytes is the memory.
func (p Pinned) Bytes() []byte { return p.b }

// Unmap gives it back; no card has it any more.
func (p Pinned) Unmap() error { return Unmap(p.b) }
