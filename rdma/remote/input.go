package remote

import (
	"io"
	"sync"
)

// lookahead is how much is read at once where only a header is asked for: the
// rest of it may be payload, which is then copied.
const lookahead = 4 << 10

// input reads frames: small ones out of a buffer, payload straight to where it
// belongs.
type input struct {
	c *conn

	// What follows is of whoever lands: the link's goroutine, or one that looks for
	// something and has not found it (inlineProgress). The goroutine keeps the turn but for
	// when it waits for the next frame.
	turn     sync.Mutex
	buf      []byte
	from, to int
	failed   error // ends the connection
	over     bool
	behind   bool // the next frame is in the buffer, and its payload has not arrived in its room
}

func newInput(c *conn) *input { return &input{c: c, buf: make([]byte, maxOther+lookahead)} }

// next returns n bytes, valid until the following call.
func (in *input) next(n int) ([]byte, error) {
	if in.to-in.from < n {
		for in.shift(); in.to < n; {
			m, err := in.c.Read(in.buf[in.to:max(n, min(in.to+lookahead, len(in.buf)))])
			in.to += m
			if err != nil && in.to < n {
				return nil, err
			}
		}
	}
	b := in.buf[in.from : in.from+n]
	in.from += n
	return b, nil
}

// shift makes room behind what is in the buffer.
func (in *input) shift() {
	in.to = copy(in.buf, in.buf[in.from:in.to])
	in.from = 0
}

// into fills b.
func (in *input) into(b []byte) error {
	n := copy(b, in.buf[in.from:in.to])
	in.from += n
	_, err := io.ReadFull(in.c, b[n:])
	return err
}

// skip drops n bytes.
func (in *input) skip(n int) error {
	for n > 0 {
		m := min(n, len(in.buf)/2)
		if _, err := in.next(m); err != nil {
			return err
		}
		n -= m
	}
	return nil
}

// readSome reads some of what has come, without waiting; false: nothing has.
func (in *input) readSome() bool {
	in.shift()
	room := in.buf[in.to:min(in.to+lookahead, len(in.buf))]
	n, err := in.c.TryRead(room)
	in.to, in.failed = in.to+n, err
	return n > 0 || err != nil
}
