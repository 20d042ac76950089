package vote

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"malt/rdma"
)

// job has ranks 0, 1 on host 0, ranks 2, 3 on host 1, and none on host 2.
var job = Job{Hosts: 3, Of: []int{0, 0, 1, 1}}

// messages are one of each form, from host 0 to host 1, or from 1 to 0 where it is an answer.
func messages() []Message {
	both := Members{SetOf(3, 0, 1), SetOf(4, 0, 2)}
	return []Message{
		{Kind: Prepare, Generation: 2, Ballot: 3, Lasted: 400 * time.Millisecond, Hosts: SetOf(3, 2)},
		{Kind: Prepare, Generation: 2, Ballot: 3, Hosts: NewSet(3)},
		{Kind: Promise, Generation: 2, Ballot: 3, Living: SetOf(4, 2)},
		{Kind: Promise, Generation: 2, Ballot: 6, Other: 5, Living: SetOf(4, 2, 3), Members: both},
		{Kind: Promise, Verdict: No, Generation: 2, Ballot: 3, Other: 4},
		{Kind: Promise, Verdict: Heard, Generation: 2, Ballot: 3, Hosts: SetOf(3, 2)},
		{Kind: Accept, Generation: 2, Ballot: 3, Members: both},
		{Kind: Accepted, Generation: 2, Ballot: 3},
		{Kind: Accepted, Verdict: No, Generation: 2, Ballot: 3, Other: 4},
		{Kind: Decided, Generation: 2, Members: both},
		{Kind: Ask, Generation: 1, Number: 7},
		{Kind: Answer, Generation: 1, Number: 7},
		{Kind: Answer, Verdict: Holds, Generation: 1, Number: 7},
	}
}

// ends are the hosts between which a message goes.
func (m Message) ends() (from, to int) {
	if m.Kind == Promise || m.Kind == Accepted || m.Kind == Answer {
		return 1, 0
	}
	return 0, 1
}

func TestFramesComeBack(t *testing.T) {
	for _, m := range messages() {
		from, to := m.ends()
		body := job.Append(nil, m)
		got, err := job.Decode(m.Kind, uint32(m.Verdict), body, from, to)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v came back as %+v, %v", m, got, err)
		}
		if least, most := Limits(m.Kind); uint32(len(body)) < least || uint32(len(body)) > most {
			t.Errorf("%+v has %d bytes, not %d to %d", m, len(body), least, most)
		}
		for n := range body {
			if _, err := job.Decode(m.Kind, uint32(m.Verdict), body[:n], from, to); !errors.Is(err, rdma.ErrCorrupt) {
				t.Errorf("%d of %d bytes of %+v: %v", n, len(body), m, err)
			}
		}
		if _, err := job.Decode(m.Kind, uint32(m.Verdict), append(body, 0), from, to); !errors.Is(err, rdma.ErrCorrupt) {
			t.Errorf("a byte more than %+v: %v", m, err)
		}
	}
}

// What a host cannot have sent is refused.
func TestFramesThatCannotBe(t *testing.T) {
	for what, change := range map[string]func(m *Message) bool{
		"the first generation is voted on": func(m *Message) bool { m.Generation = 1; return m.Ballot != 0 },
		"generation 0":                     func(m *Message) bool { m.Generation = 0; return true },
		"a generation without room":        func(m *Message) bool { m.Generation = MaxGeneration + 1; return true },
		"a ballot of round 0":              func(m *Message) bool { ok := m.Ballot == 3; m.Ballot = 0; return ok },
		"a ballot of another host":         func(m *Message) bool { m.Ballot++; return m.Ballot > 1 },
		"a ballot without room":            func(m *Message) bool { ok := m.Ballot == 3; m.Ballot = MaxBallot/3*3 + 3; return ok },
		"no that is no higher":             func(m *Message) bool { m.Other = m.Ballot; return m.Verdict == No },
		"accepted above the promise":       func(m *Message) bool { m.Other = m.Ballot + 1; return m.Kind == Promise && m.Members.Hosts != nil },
		"a suspect proposes":               func(m *Message) bool { m.Hosts = SetOf(3, 0); return m.Kind == Prepare },
		"none is heard":                    func(m *Message) bool { m.Hosts = NewSet(3); return m.Verdict == Heard && m.Kind == Promise },
		"a host that is not there":         func(m *Message) bool { m.Hosts = Set{8}; return m.Kind == Prepare },
		"a rank of another host":           func(m *Message) bool { m.Living = SetOf(4, 0); return m.Kind == Promise && m.Verdict == Yes },
		"a rank without its host":          func(m *Message) bool { m.Members.Hosts = SetOf(3, 2, 1); return m.Members.Ranks != nil },
		"nobody": func(m *Message) bool {
			ok := m.Members.Ranks != nil
			m.Members = Members{NewSet(3), NewSet(4)}
			return ok
		},
		"a doubt of an age": func(m *Message) bool { m.Lasted = (mostLasted + 1) * time.Millisecond; return m.Kind == Prepare },
	} {
		tried := 0
		for _, m := range messages() {
			from, to := m.ends()
			if !change(&m) {
				continue
			}
			tried++
			if got, err := job.Decode(m.Kind, uint32(m.Verdict), job.Append(nil, m), from, to); !errors.Is(err, rdma.ErrCorrupt) {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		}
		if tried == 0 {
			t.Errorf("%s: there is no such message", what)
		}
	}
	for k := range Kind(40) {
		for verdict := range uint32(300) {
			fits := false
			for _, m := range messages() {
				fits = fits || m.Kind == k && m.Verdict == Verdict(verdict) && verdict < 4
			}
			_, err := job.Decode(k, verdict, nil, 0, 1)
			if unknown := strings.Contains(err.Error(), "with verdict"); unknown == fits {
				t.Errorf("kind %d, verdict %d: %v", k, verdict, err)
			}
		}
	}
}

// What is decoded is encoded in the same way: there is one form of each message.
func FuzzDecode(f *testing.F) {
	for _, m := range messages() {
		f.Add(uint8(m.Kind), uint8(m.Verdict), job.Append(nil, m))
	}
	f.Fuzz(func(t *testing.T, kind, verdict uint8, body []byte) {
		m, err := job.Decode(Kind(kind), uint32(verdict), body, 0, 1)
		if err != nil {
			if !errors.Is(err, rdma.ErrCorrupt) {
				t.Errorf("%v", err)
			}
			return
		}
		if again := job.Append(nil, m); string(again) != string(body) {
			t.Errorf("% x is read as %+v, which is written % x", body, m, again)
		}
	})
}

// docs/developers/wire.md has every kind of frame with the lengths that are allowed.
func TestWireIsWrittenDown(t *testing.T) {
	text, err := os.ReadFile("../../docs/developers/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Votes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| [a-z]+ \| .* \| ([\d,]+)(?: … ([\d,]+))? \|$`).FindAllStringSubmatch(section, -1)
	if len(rows) != last {
		t.Fatalf("%d kinds of frames are written down, there are %d", len(rows), last)
	}
	for i, row := range rows {
		number := func(s string) uint32 {
			n, _ := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
			return uint32(n)
		}
		from, to := number(row[2]), number(row[2])
		if row[3] != "" {
			to = number(row[3])
		}
		k := First + Kind(i)
		if least, most := Limits(k); row[1] != strconv.Itoa(int(k)) || least != from || most != to {
			t.Errorf("%q; expected kind %d with %d to %d bytes", row[0], k, least, most)
		}
	}
}
