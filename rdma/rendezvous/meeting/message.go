package meeting

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"malt/internal/say"
	"malt/rdma"
)

// message is what is said over a connection whose ends have proved the token:
// four bytes of length, and JSON with one of these.
type message struct {
	Here    *card           `json:"here,omitempty"`    // a rank's first word
	Waiting *waitingMessage `json:"waiting,omitempty"` // from rank 0, whenever that changes
	Table   *tableMessage   `json:"table,omitempty"`   // all have met
	Got     *struct{}       `json:"got,omitempty"`     // a rank has the table
	Failed  *failure        `json:"failed,omitempty"`  // from rank 0: it comes to nothing
	Leaving *leaving        `json:"leaving,omitempty"` // a rank gives up
}

// card is what a rank says of itself.
type card struct {
	Version   string           `json:"version"`   // of MALT
	Host      string           `json:"host"`      // the same where memory can be shared
	Network   string           `json:"network"`   // the same where addresses are
	Name      string           `json:"name"`      // of the host, for messages
	Pid       int              `json:"pid"`       // for messages
	Addresses []netip.AddrPort `json:"addresses"` // at which it listens
	Together  together         `json:"together,omitempty"`
}

// waitingMessage is short, since it comes often: of absent, bit r%8 of byte r/8 is
// rank r.
type waitingMessage struct {
	Absent []byte `json:"absent"`
	Detail string `json:"detail,omitempty"`
	Do     string `json:"do,omitempty"`
}

func waitingFor(ranks []int, detail, do string) *waitingMessage {
	w := &waitingMessage{Detail: printable(detail, maxText), Do: printable(do, maxText)}
	for _, r := range ranks {
		for len(w.Absent) <= r/8 {
			w.Absent = append(w.Absent, 0)
		}
		w.Absent[r/8] |= 1 << (r % 8)
	}
	return w
}

func (w *waitingMessage) ranks() (ranks []int) {
	for r := range 8 * len(w.Absent) {
		if w.Absent[r/8]>>(r%8)&1 != 0 {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

type tableMessage struct {
	Job        string     `json:"job"`
	Generation uint32     `json:"generation"`
	Ranks      []seatCard `json:"ranks"`
}

// failure says why a meeting comes to nothing: by Rank's death, or, where Rank is
// -1, by what the ranks were told; or, for one rank, that it is Taken.
type failure struct {
	Rank  int        `json:"rank"`
	Kind  rdma.Death `json:"kind,omitempty"`
	Taken bool       `json:"taken,omitempty"`
	reason
}

type leaving struct{ reason }

// reason is the lines of a say.Error.
type reason struct {
	Why   string `json:"why"`
	Where string `json:"where,omitempty"`
	Do    string `json:"do,omitempty"`
}

func reasonOf(err error) reason {
	e := say.Of(err)
	return reason{e.What, e.Where, e.Do}
}

func (r *reason) error(kind error) error {
	return &say.Error{Kind: kind, What: r.Why, Where: r.Where, Do: r.Do}
}

// sentence is r within another sentence.
func (r *reason) sentence() string { return joined(r.Why, r.Where) }

func (r *reason) print() {
	for _, line := range []*string{&r.Why, &r.Where, &r.Do} {
		*line = printable(*line, maxText)
	}
}

// joined puts clauses that are not empty behind each other.
func joined(clauses ...string) string {
	return strings.Join(slices.DeleteFunc(clauses, func(s string) bool { return s == "" }), "; ")
}

const (
	maxWord      = 128 // of a version, an identity, a name
	maxText      = 4 << 10
	maxAddresses = 16

	// What a rank says to rank 0 is short.
	maxFromRank = 16 << 10
	// What rank 0 says grows with the ranks.
	maxPerRank = 4 << 10
)

var errMessage = errors.New("malformed message")

// encode is m with its length.
func (m *message) encode() []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // nothing in a message can fail
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// receive reads a message of at most limit bytes. Memory is taken as bytes come.
func receive(r io.Reader, limit int) (*message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > uint32(limit) {
		return nil, fmt.Errorf("%w: of %d bytes, expected at most %d", errMessage, n, limit)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return decode(b.Bytes())
}

// decode takes JSON apart. What it returns is within all bounds.
func decode(b []byte) (*message, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	m := new(message)
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	if d.InputOffset() != int64(len(b)) {
		return nil, fmt.Errorf("%w: %d bytes after its end", errMessage, int64(len(b))-d.InputOffset())
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	return m, nil
}

// check bounds what a message says, and makes its texts printable.
func (m *message) check() error {
	kinds := 0
	if c := m.Here; c != nil {
		kinds++
		if len(c.Version) > maxWord || len(c.Host) > maxWord || len(c.Network) > maxWord {
			return fmt.Errorf("a word of more than %d bytes", maxWord)
		}
		c.Version, c.Name = printable(c.Version, maxWord), printable(c.Name, maxWord)
		if err := errors.Join(checkAddresses(c.Addresses), c.Together.check()); err != nil {
			return err
		}
	}
	if w := m.Waiting; w != nil {
		kinds++
		w.Detail, w.Do = printable(w.Detail, maxText), printable(w.Do, maxText)
		if len(w.Absent) > MaxSize/8 {
			return fmt.Errorf("%d ranks absent", 8*len(w.Absent))
		}
	}
	if t := m.Table; t != nil {
		kinds++
		if err := t.check(); err != nil {
			return err
		}
	}
	if f := m.Failed; f != nil {
		kinds++
		f.print()
		if f.Rank < -1 || f.Rank >= MaxSize {
			return fmt.Errorf("rank %d", f.Rank)
		}
		if f.Kind >= rdma.Deaths {
			return fmt.Errorf("death of kind %d", f.Kind)
		}
	}
	if m.Leaving != nil {
		kinds++
		m.Leaving.print()
	}
	if m.Got != nil {
		kinds++
	}
	if kinds != 1 {
		return fmt.Errorf("%d things at once, expected one", kinds)
	}
	return nil
}

func (t *tableMessage) check() error {
	if id, err := hex.DecodeString(t.Job); err != nil || len(id) != jobBytes {
		return fmt.Errorf("job %q", t.Job)
	}
	if len(t.Ranks) > MaxSize {
		return fmt.Errorf("%d ranks", len(t.Ranks))
	}
	hosts, networks := 0, 0
	for r := range t.Ranks {
		c := &t.Ranks[r]
		if c.Host < 0 || c.Host > hosts || c.Network < 0 || c.Network > networks {
			return fmt.Errorf("host %d, network %d of rank %d", c.Host, c.Network, r)
		}
		hosts, networks = max(hosts, c.Host+1), max(networks, c.Network+1)
		c.Name = printable(c.Name, maxWord)
		if err := checkAddresses(c.Addresses); err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return nil
}

func checkAddresses(all []netip.AddrPort) error {
	if len(all) < 1 || len(all) > maxAddresses {
		return fmt.Errorf("%d addresses, expected 1 to %d", len(all), maxAddresses)
	}
	for _, a := range all {
		if ip := a.Addr(); !a.IsValid() || a.Port() == 0 || ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() {
			return fmt.Errorf("address %v", a)
		}
	}
	return nil
}

// printable is text for a message: one line, and not too long.
func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
