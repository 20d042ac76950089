package libmalt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// chunk is the size of the messages that collectives are made of.
const chunk = 256 << 10

// message is one that a rank sends in a collective.
type message struct {
	call uint64
	part uint16
	data []byte
}

// header begins a part of a call; see header.go.
func header(op string, total uint64, objects int) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(op)))
	b = append(b, op...)
	b = binary.LittleEndian.AppendUint64(b, total)
	b = binary.LittleEndian.AppendUint32(b, uint32(objects))
	return append(b, make([]byte, 20*min(objects, 3))...)
}

// against runs an allreduce of 1 MiB, call 2, on rank 0, while rank 1 has joined
// the job as it should and then sends these messages.
func against(t testing.TB, messages []message) error { return againstMarks(t, nil, messages) }

// againstMarks is against a rank 1 that has also set some of its words.
func againstMarks(t testing.TB, marks map[int]uint64, messages []message) error {
	ts, ctx := inmem.New(2), background(t)
	joined := make(chan error, 1)
	go func() {
		peer := ts[1]
		words, err := peer.Words(ctx, "world", 40) // as many as a world has
		if err != nil {
			joined <- err
			return
		}
		for i, v := range marks {
			words.Put(i, v)
		}
		spec := rdma.Spec{Bytes: chunk, Mode: rdma.Queue(4), About: "collectives"}
		out, err := peer.Publish(ctx, "world", spec, []int{0})
		if err == nil {
			_, err = peer.Subscribe(ctx, "world", spec, []int{0})
		}
		started := binary.LittleEndian.AppendUint32(header("malt.init\t", 4, 0), 0) // on the host of rank 0
		for _, m := range append([]message{{1, 0, started}}, messages...) {
			if err == nil {
				var b []byte
				if b, err = out.Begin(); b == nil {
					break
				}
				err = out.Commit(copy(b, m.data), rdma.Stamp{Tag: m.call, Kind: m.part}, nil)
			}
		}
		joined <- err
	}()
	w, err := libmalt.NewWorld(ctx, ts[0], libmalt.Config{})
	if err := errors.Join(err, <-joined); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	data := bytes.Repeat([]byte{1}, 1<<20)
	err = w.AllReduce(routetest.Tried(), data, libmalt.Float32, "sum")
	if err != nil && !bytes.Equal(data, bytes.Repeat([]byte{1}, 1<<20)) {
		t.Error("a call that failed has changed its data")
	}
	return err
}

// TestHostileCollectives: what another rank sends is never believed.
func TestHostileCollectives(t *testing.T) {
	const op, total = "malt.allreduce\tfloat32[262144], \"sum\"", 1 << 20
	full := make([]byte, chunk)
	for name, c := range map[string]struct {
		messages []message
		want     error
	}{
		"as it should be":           {[]message{{2, 0, header(op, total, 3)}, {2, 0, full}, {2, 0, full}}, libmalt.ErrTimeout},
		"nothing":                   {[]message{{2, 0, nil}}, rdma.ErrCorrupt},
		"a header cut short":        {[]message{{2, 0, header(op, total, 0)[:9]}}, rdma.ErrCorrupt},
		"more objects than fit":     {[]message{{2, 0, header(op, total, 1<<31)}}, rdma.ErrCorrupt},
		"another call":              {[]message{{2, 0, header("barrier", 0, 0)}}, libmalt.ErrMismatch},
		"less data":                 {[]message{{2, 0, header(op, 100, 0)}}, rdma.ErrCorrupt},
		"another amount of data":    {[]message{{2, 0, header(op, total+4, 0)}}, rdma.ErrCorrupt},
		"no end of data":            {[]message{{2, 0, header(op, 1<<62, 0)}}, rdma.ErrCorrupt},
		"data behind the header":    {[]message{{2, 0, append(header(op, total, 0), 1)}}, rdma.ErrCorrupt},
		"a chunk too short":         {[]message{{2, 0, header(op, total, 0)}, {2, 0, full[4:]}}, rdma.ErrCorrupt},
		"an empty chunk":            {[]message{{2, 0, header(op, total, 0)}, {2, 0, nil}}, rdma.ErrCorrupt},
		"another part":              {[]message{{2, 1, header(op, total, 0)}}, rdma.ErrCorrupt},
		"a later call":              {[]message{{7, 0, header(op, total, 0)}}, libmalt.ErrTimeout}, // that it gave this one up may come behind
		"an earlier call":           {[]message{{1, 0, full}, {1, 1, header("malt.init\t", 0, 0)}}, libmalt.ErrTimeout},
		"an earlier header":         {[]message{{1, 1, header("malt.init\t", 0, 0)[:9]}}, rdma.ErrCorrupt}, // it may have news
		"news of no object":         {[]message{{2, 1 << 14, full[:20]}}, libmalt.ErrTimeout},
		"news cut short":            {[]message{{2, 1 << 14, full[:19]}}, rdma.ErrCorrupt},
		"an empty reason":           {[]message{{2, 1 << 15, nil}}, libmalt.ErrLeft},
		"a reason of no rank":       {[]message{{2, 1 << 15, bytes.Repeat([]byte{255}, 100)}}, libmalt.ErrLeft},
		"a reason between the data": {[]message{{2, 0, header(op, total, 0)}, {2, 0, full}, {2, 1 << 15, full}}, libmalt.ErrLeft},
	} {
		t.Run(name, func(t *testing.T) {
			if err := against(t, c.messages); !errors.Is(err, c.want) {
				t.Errorf("got error %v, want one of kind %q", err, c.want)
			}
		})
	}
}

// TestHostilePlace: neither is what another rank says of its place, in word 17 and those behind it. A count that
// stays odd is that of a rank which died while it was telling.
func TestHostilePlace(t *testing.T) {
	const text = 0x414141 // AAA
	for name, c := range map[string]struct {
		head uint64
		want bool
	}{
		"as it should be":       {2<<8 | 3, true},
		"longer than the room":  {2<<8 | 161, false},
		"as long as can be":     {2<<8 | 255, false},
		"being told, for ever":  {3<<8 | 3, false},
		"words without a place": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := againstMarks(t, map[int]uint64{17: c.head, 18: text}, nil)
			if err := wantErr(err, libmalt.ErrTimeout); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(err.Error(), "(computing, its last call: AAA)"); got != c.want || !got && strings.Contains(err.Error(), "AA") {
				t.Errorf("%q", err)
			}
		})
	}
}

// FuzzCollective: whatever the bytes, the call ends with an error.
func FuzzCollective(f *testing.F) {
	f.Add(uint16(0), header("malt.allreduce\tfloat32[262144], \"sum\"", 1<<20, 2), []byte{})
	f.Add(uint16(0), header("barrier", 0, 0), []byte{1})
	f.Add(uint16(1<<15), []byte{1, 0, 0, 0, 1, 'n', 'o'}, []byte{})
	f.Fuzz(func(t *testing.T, part uint16, first, second []byte) {
		if err := against(t, []message{{2, part, first}, {2, part, second}}); err == nil {
			t.Error("an allreduce of one rank out of two succeeded")
		}
	})
}
