package codec

import (
	"malt/internal/say"
	"malt/libmalt/filter"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Codec turns an object's bytes into messages, and messages into updates. The gate of the
// object lets one call at a time in.
type Codec interface {
	// Most is the length of the longest message; Row, that of a row in bytes, 0 without
	// rows.
	Most() int
	Row() int

	// Name puts rows into the next message, in any order; nil: those that it finds. to are
	// receivers that the caller has named. It refuses what does not go.
	Name(rows []int64, to []int) error
	// Encode writes the next message to slot. What it has no memory for is in the
	// message after it.
	Encode(slot []byte, m Message) (bytes int, kind spvec.Kind, err error)
	// Repeats tells whether rows that a reader has not folded come again: an update that
	// is dropped is not released then.
	Repeats() bool
	// Widened says that there is a receiver which has got no message yet.
	Widened()
	// Settled says that all ranks have the present values; with summed, that these are the
	// sum of the shares of those ranks: see Cumulative. Renewed says that the boxes are
	// new, and what was not read in the old ones counts as read.
	Settled(summed []int)
	Renewed()

	// Decode reads the updates of a gather. The other methods are about these, until the
	// next.
	Decode(us []Update) error
	// Show makes them what a fold of the user's sees. Shows refuses one before they come.
	Show(us []Update)
	Shows() error
	// Whole is the i-th laid out as the object is. Rows that it does not mention are, of
	// a model, those of the object at the first call for i, of a gradient zero.
	Whole(us []Update, i int) ([]byte, error)
	// Fold combines them into the object; weight is that of its own values. false: all of
	// them are whole, and this is left to the caller.
	Fold(op reduce.Op, weight float64, us []Update) bool

	// Close gives memory back.
	Close() error
}

// Message is what a codec is told of the message that it makes.
type Message struct {
	Bytes   int // of the object; all where it has rows
	To      []int
	Readers []int // of the box, To among them
	Out     rdma.Outbox
	Queue   bool // nothing is overwritten
	Weight  float64
	Clock   uint64
}

// Update is one received payload.
type Update struct {
	Data   []byte   // read-only, the sender's own memory, valid until End; of a sparse vector the values of Rows
	Rows   []uint32 // of a sparse vector: what the update mentions, ascending; nil: all rows
	Rank   int      // who sent it
	Clock  uint64   // the sender's clock when it did
	Age    int64    // the reader's clock minus that; negative: the sender is ahead
	Weight float64

	Kind  spvec.Kind
	Seq   uint64
	Read  uint64 // the sender's update that was folded last
	whole bool   // Whole has been made
}

// New is the codec of m, whose memory is there; f is for that of a model. Close it where it is
// not used, too.
func New(kind Kind, m *core.Member, shape spvec.Shape, f filter.Filter) (Codec, error) {
	r := rows{m: m, shape: shape}
	switch kind {
	case Model:
		shadow, err := m.Job.T.Map(max(shape.Bytes(), 1))
		return &model{rows: r, shadow: shadow, sent: make([]uint64, m.Job.Size), filter: f}, err
	case Gradient:
		return &gradient{rows: r}, nil
	}
	return dense{m, m.Kind == "vector"}, nil
}

// dense sends bytes as they are.
type dense struct {
	m     *core.Member
	whole bool // each message is the whole object
}

func (d dense) Most() int                            { return len(d.m.Data) }
func (dense) Row() int                               { return 0 }
func (dense) Repeats() bool                          { return false }
func (dense) Settled([]int)                          {}
func (dense) Widened()                               {}
func (dense) Renewed()                               {}
func (dense) Show([]Update)                          {}
func (dense) Shows() error                           { return nil }
func (dense) Fold(reduce.Op, float64, []Update) bool { return false }
func (dense) Close() error                           { return nil }

func (d dense) Name(rows []int64, _ []int) error {
	if rows != nil {
		return say.Errorf(core.ErrInvalid, "%s is not sparse: it is sent as a whole, and rows cannot be named", d.m).Try("Make it with sparse=model or sparse=gradient.")
	}
	return nil
}

func (d dense) Encode(slot []byte, m Message) (int, spvec.Kind, error) {
	return reduce.Copy(slot, d.m.Data[:m.Bytes]), 0, nil
}

func (d dense) Decode(us []Update) error {
	for _, u := range us {
		if d.whole && len(u.Data) != len(d.m.Data) {
			return say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %d bytes, expected %d", d.m.Called("gather"), u.Rank, len(u.Data), len(d.m.Data))
		}
	}
	return nil
}

func (dense) Whole(us []Update, i int) ([]byte, error) { return us[i].Data, nil }
