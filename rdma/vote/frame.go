package vote

import (
	"encoding/binary"
	"time"

	"malt/internal/say"
	"malt/rdma"
)

// The body of a frame, little-endian; docs/developers/wire.md has the table. The frame's
// header has the kind, and the verdict as its arg.
//
//	prepare    generation 8, ballot 8, lasted 8 (ms), suspects
//	promise    generation 8, ballot 8, and: yes: other 8, living, members if other is not 0
//	                                        no: other 8      heard: hosts
//	accept     generation 8, ballot 8, members
//	accepted   generation 8, ballot 8, and: no: other 8
//	decided    generation 8, members
//	ask        generation 8, number 8
//	answer     generation 8, number 8
//
// A set of hosts or of ranks has a bit for each in the job: number i is bit i mod 8 of byte
// i/8. Members are a set of hosts and one of ranks.

// verdicts are those that a kind of message may have.
var verdicts = [last]uint32{
	Promise - First:  1<<Yes | 1<<No | 1<<Heard,
	Accepted - First: 1<<Yes | 1<<No,
	Answer - First:   1<<Yes | 1<<Holds,
}

// Most is the largest number of ranks, and of hosts, of a job.
const Most = 4096

// Limits are the least and the most bytes of a body in any job.
func Limits(k Kind) (least, most uint32) {
	const set = Most / 8
	switch k {
	case Prepare:
		return 25, 24 + set
	case Promise:
		return 17, 24 + 3*set
	case Accept:
		return 18, 16 + 2*set
	case Accepted:
		return 16, 24
	case Decided:
		return 10, 8 + 2*set
	}
	return 16, 16
}

// Append adds the body of a message to b.
func (j Job) Append(b []byte, m Message) []byte {
	word := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	set := func(s Set, n int) {
		for i := range (n + 7) / 8 {
			b = append(b, byte(s[i/8]>>(8*(i%8))))
		}
	}
	members := func() { set(m.Members.Hosts, j.Hosts); set(m.Members.Ranks, len(j.Of)) }
	word(m.Generation)
	switch m.Kind {
	case Decided:
		members()
		return b
	case Ask, Answer:
		word(m.Number)
		return b
	}
	word(uint64(m.Ballot))
	switch {
	case m.Kind == Prepare:
		word(uint64(m.Lasted / time.Millisecond))
		set(m.Hosts, j.Hosts)
	case m.Kind == Accept:
		members()
	case m.Verdict == Heard:
		set(m.Hosts, j.Hosts)
	case m.Verdict == No:
		word(uint64(m.Other))
	case m.Kind == Promise:
		word(uint64(m.Other))
		set(m.Living, len(j.Of))
		if m.Other != 0 {
			members()
		}
	}
	return b
}

// Decode is the message with such a body, that host from sent to host to. It fails with
// rdma.ErrCorrupt unless Append makes the same body from it.
func (j Job) Decode(k Kind, arg uint32, body []byte, from, to int) (m Message, err error) {
	if k < First || k > Last || max(verdicts[k-First], 1<<Yes)>>arg&1 == 0 {
		return m, malformed("a vote of kind %d with verdict %d", k, arg)
	}
	r := reader{left: body}
	m = Message{Kind: k, Verdict: Verdict(arg), Generation: r.word()}
	members := func() { m.Members = Members{r.set(j.Hosts), r.set(len(j.Of))} }
	switch {
	case k == Decided:
		members()
	case k == Ask || k == Answer:
		m.Number = r.word()
	default:
		m.Ballot = Ballot(r.word())
	}
	switch {
	case k == Prepare:
		ms := r.word()
		r.bad = r.bad || ms > mostLasted
		m.Lasted = time.Duration(ms) * time.Millisecond
		m.Hosts = r.set(j.Hosts)
	case k == Accept:
		members()
	case m.Verdict == Heard:
		m.Hosts = r.set(j.Hosts)
	case m.Verdict == No:
		m.Other = Ballot(r.word())
	case k == Promise:
		m.Other = Ballot(r.word())
		m.Living = r.set(len(j.Of))
		if m.Other != 0 {
			members()
		}
	}
	if r.bad || len(r.left) > 0 {
		return m, malformed("a vote of kind %d, verdict %d with %d bytes, for %d hosts and %d ranks", k, arg, len(body), j.Hosts, len(j.Of))
	}
	return m, j.check(m, from, to)
}

// mostLasted is more milliseconds than any doubt has to last.
const mostLasted = 1 << 40

// check fails unless a message can be from that host.
func (j Job) check(m Message, from, to int) error {
	first, owner := uint64(2), to
	switch m.Kind {
	case Decided, Ask, Answer:
		first = 1
	case Prepare, Accept:
		owner = from
	}
	if m.Generation < first || m.Generation > MaxGeneration {
		return malformed("a vote of kind %d on generation %d; expected %d to %d", m.Kind, m.Generation, first, uint64(MaxGeneration))
	}
	if first == 2 && (m.Ballot < Ballot(j.Hosts) || m.Ballot > MaxBallot || m.Ballot.Host(j.Hosts) != owner) {
		return malformed("a vote of kind %d under ballot %d; expected one of host %d, %d to %d", m.Kind, m.Ballot, owner, j.Hosts, Ballot(MaxBallot))
	}
	switch other := m.Other; {
	case m.Verdict == No && (other <= m.Ballot || other > MaxBallot),
		m.Verdict == Yes && other != 0 && (other < Ballot(j.Hosts) || other > m.Ballot):
		return malformed("a vote of kind %d about ballot %d, with ballot %d", m.Kind, m.Ballot, other)
	}
	if m.Kind == Prepare && m.Hosts.Has(from) || m.Verdict == Heard && m.Hosts.Empty() {
		return malformed("a vote of kind %d, verdict %d about hosts %x", m.Kind, m.Verdict, m.Hosts)
	}
	if m.Living != nil && !m.Living.Within(j.On(from)) {
		return malformed("host %d says that ranks %x live", from, m.Living)
	}
	if m.Members.Hosts == nil {
		return nil
	}
	if m.Members.Hosts.Empty() {
		return malformed("a view without hosts")
	}
	for rank := range m.Members.Ranks.All() {
		if !m.Members.Hosts.Has(j.Of[rank]) {
			return malformed("a view with rank %d, and without its host %d", rank, j.Of[rank])
		}
	}
	return nil
}

// reader takes a body apart. It is bad where something is missing, or a number is not in the
// set that has its bit.
type reader struct {
	left []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if len(r.left) < n {
		r.bad, r.left = true, nil
		return make([]byte, n)
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *reader) word() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *reader) set(n int) Set {
	s := NewSet(n)
	for i, v := range r.take((n + 7) / 8) {
		s[i/8] |= uint64(v) << (8 * (i % 8))
	}
	r.bad = r.bad || !s.Within(Everyone(n))
	return s
}

// malformed says that what an authenticated peer sent cannot be.
func malformed(format string, args ...any) error {
	return say.Errorf(rdma.ErrCorrupt, "corrupt message: "+format, args...)
}
