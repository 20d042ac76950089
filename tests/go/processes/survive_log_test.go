package processes

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"malt/libmalt"
)

// mostRanks and mostEvents are what a log has room for.
const (
	mostRanks  = 8
	mostEvents = 4000
)

// event is one call of a rank that may outlive others. What the rank knows before the
// call is written before it; the rest after it, ended last. So the event of a killed
// rank's last call has no end, and the others may have seen the call or not.
type event struct {
	Kind         eventKind
	Op           int64  // an opKind, or a collectiveKind
	Phase        int64  // of the plan, from 1
	Call         int64  // number of a collective call
	Began, Ended int64  // of now; 0: it has not
	Before       uint64 // the object's clock
	Clock        uint64 // of a scatter, its own; else the object's clock after the call
	Seen         uint64 // the generation before the call
	Generation   uint64 // after it
	Members      uint64 // a set: who takes part then

	To    uint64 // a set: whom a scatter is for
	Exact bool   // it is for these, if it is at all; else the graph has changed meanwhile
	Named bool   // they are some of the receivers
	Sum   uint64 // of what is sent

	Folded [mostRanks]uint64 // by sender: clock of its update; 0: none
	Sums   [mostRanks]uint64 // of these
	Count  int64             // of updates, by the library's own account

	InPlace bool    // the ranks' arrays lie in memory of all
	Mine    float64 // what the rank gives a collective call, in each element
	Result  result
}

type eventKind int64

const (
	scattered eventKind = iota
	looked              // a gather whose updates the rank has read
	folded
	synced    // scattered and folded
	called    // a collective call
	void      // it was refused, and nothing was sent
	done      // with the object
	confirmed // this rank takes part still
)

// result is what an array, or the arrays of a vector, hold.
type result struct {
	Values    [4]float64 // by array: of nearly all elements
	Odd       int64      // elements of another value
	Low, High float64    // of all elements
	Sum       uint64     // of all bytes
	Set       uint64     // of a collective call: whose values are in it
	Lost      bool       // the root of a broadcast is dead
}

// logbook is a rank's events, in memory that the test maps, too.
type logbook struct {
	count *atomic.Int64
	all   []event
}

const (
	eventBytes = int(unsafe.Sizeof(event{}))
	bookBytes  = (line + mostEvents*eventBytes + line - 1) / line * line
)

// book is that of a rank of so many: the last part of the page.
func (p page) book(rank, ranks int) *logbook {
	at := unsafe.Pointer(&p[len(p)-(ranks-rank)*bookBytes])
	return &logbook{(*atomic.Int64)(at), unsafe.Slice((*event)(unsafe.Add(at, line)), mostEvents)}
}

// events is a copy of what there is.
func (b *logbook) events() []event { return append([]event{}, b.all[:b.count.Load()]...) }

// begin adds e, of a call that is about to be made.
func (b *logbook) begin(e event) *event {
	n := b.count.Load()
	e.Began = int64(now())
	b.all[n] = e
	b.count.Store(n + 1)
	return &b.all[n]
}

func (e *event) end() { atomic.StoreInt64(&e.Ended, int64(now())) }

// setOf makes a set of ranks, and ranksOf the ranks of one.
func setOf(ranks []int) (set uint64) {
	for _, r := range ranks {
		set |= 1 << r
	}
	return set
}

func ranksOf(set uint64) (ranks []int) {
	for ; set != 0; set &= set - 1 {
		ranks = append(ranks, bits.TrailingZeros64(set))
	}
	return ranks
}

func has(set uint64, rank int) bool { return set>>rank&1 != 0 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(b []byte) uint64 { return uint64(crc32.Checksum(b, castagnoli)) }

// resultOf reads arrays, of which each has one value, but perhaps for a few elements.
func resultOf(arrays [][]byte, types []libmalt.DType) result {
	r := result{Low: math.Inf(1), High: math.Inf(-1)}
	var sums []byte
	for i, b := range arrays {
		r.add(i, b, types[i].Size())
		s := sum(b)
		sums = append(sums, byte(s), byte(s>>8), byte(s>>16), byte(s>>24))
	}
	r.Sum = sum(sums)
	return r
}

func (r *result) add(i int, b []byte, size int) {
	if len(b) == 0 {
		return
	}
	x, _, _ := constant(b[:size], size)
	r.Values[i], r.Low, r.High = x, min(r.Low, x), max(r.High, x)
	if bytes.Equal(b[size:], b[:len(b)-size]) { // all are alike, but for rare cases
		return
	}
	votes := 0
	for at := 0; at < len(b); at += size {
		x, _, _ := constant(b[at:at+size], size)
		r.Low, r.High = min(r.Low, x), max(r.High, x)
		switch { // the value of more than half of the elements is the one that stays
		case votes == 0:
			r.Values[i], votes = x, 1
		case x == r.Values[i]:
			votes++
		default:
			votes--
		}
	}
	for at := 0; at < len(b); at += size {
		if x, _, _ := constant(b[at:at+size], size); x != r.Values[i] {
			r.Odd++
		}
	}
}

// shared tells whether b is in memory that other processes map, too.
func shared(b []byte) bool {
	maps, _ := os.ReadFile("/proc/self/maps")
	at := uint64(uintptr(unsafe.Pointer(&b[:1][0])))
	for row := range strings.Lines(string(maps)) {
		var from, to uint64
		var may string
		if n, _ := fmt.Sscanf(row, "%x-%x %s", &from, &to, &may); n == 3 && from <= at && at < to {
			return strings.HasSuffix(may, "s")
		}
	}
	return false
}
