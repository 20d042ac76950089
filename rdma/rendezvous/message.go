package rendezvous

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A connection carries one request and one reply, each behind its length in four
// bytes, little-endian like everything else; descriptors ride on the first bytes
// of the reply. When the client has mapped them it sends one byte, which lets
// the server forget its copy. Either end that dies, stops or breaks off in
// between leaves the other with a broken connection, which means nothing: the
// client asks again unless the peer's state is final, the server keeps its copy.
const (
	maxMessage = 64 << 10
	maxString  = 16 << 10 // so that three fit a message
	maxFiles   = 8

	protocol = 3
)

// What a request wants.
const (
	wantPage   = 1 // the control page; the first member has it
	wantRegion = 2 // the memory announced under a name
	wantBack   = 3 // to take the place of a rank that has died: again.go
)

// request is what a client sends.
type request struct {
	version uint16
	kind    uint16
	rank    uint32 // who asks
	size    uint32 // the job's size as far as the client knows
	pid     uint32 // of the client, as it sees itself
	token   string
	name    string
}

// reply is what it gets. Descriptors come beside it, as many as sizes.
type reply struct {
	refused string   // why not, a packed say.Error; "" with everything else filled in
	text    string   // the announcement's
	readers []uint32 // the announcement's
	sizes   []uint64 // of the memory behind each descriptor
}

func (m *request) encode() []byte {
	b := binary.LittleEndian.AppendUint16(nil, m.version)
	b = binary.LittleEndian.AppendUint16(b, m.kind)
	b = binary.LittleEndian.AppendUint32(b, m.rank)
	b = binary.LittleEndian.AppendUint32(b, m.size)
	b = binary.LittleEndian.AppendUint32(b, m.pid)
	b = appendString(b, m.token)
	return appendString(b, m.name)
}

func decodeRequest(b []byte) (request, error) {
	d := decoder{rest: b}
	m := request{
		version: uint16(d.number(2)),
		kind:    uint16(d.number(2)),
		rank:    uint32(d.number(4)),
		size:    uint32(d.number(4)),
		pid:     uint32(d.number(4)),
		token:   d.string(),
		name:    d.string(),
	}
	return m, d.end("request")
}

func (m *reply) encode() []byte {
	b := appendString(nil, m.refused)
	b = appendString(b, m.text)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.readers)))
	for _, r := range m.readers {
		b = binary.LittleEndian.AppendUint32(b, r)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.sizes)))
	for _, s := range m.sizes {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	return b
}

func decodeReply(b []byte) (reply, error) {
	d := decoder{rest: b}
	m := reply{refused: d.string(), text: d.string()}
	for range d.count(MaxSize, 4) {
		m.readers = append(m.readers, uint32(d.number(4)))
	}
	for range d.count(maxFiles, 8) {
		m.sizes = append(m.sizes, d.number(8))
	}
	return m, d.end("reply")
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

var errMessage = errors.New("malformed message")

// decoder takes a message apart. After the first thing that does not fit it
// returns zeros; end tells.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) bytes(n int) []byte {
	if d.bad || n > len(d.rest) {
		d.bad = true
		return make([]byte, min(n, 8))
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) number(width int) uint64 {
	switch b := d.bytes(width); width {
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// count is a number of items of width bytes each, all of which must be there:
// what is made for them is never larger than the message.
func (d *decoder) count(most, width int) int {
	n := d.number(4)
	if n > uint64(most) || n*uint64(width) > uint64(len(d.rest)) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) string() string {
	n := d.count(maxString, 1)
	if d.bad {
		return ""
	}
	return string(d.bytes(n))
}

func (d *decoder) end(what string) error {
	if d.bad || len(d.rest) != 0 {
		return fmt.Errorf("%w: %s that is too short, too long, or beyond its limits", errMessage, what)
	}
	return nil
}
