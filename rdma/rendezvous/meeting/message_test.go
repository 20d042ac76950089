package meeting

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func messages() map[string]*message {
	v4, v6 := netip.MustParseAddrPort("192.0.2.7:4711"), netip.MustParseAddrPort("[2001:db8::1]:65535")
	return map[string]*message{
		"here":    {Here: &card{Version: "0.1.0", Host: "h", Network: "n", Name: "node-1", Pid: 7, Addresses: []netip.AddrPort{v4, v6}, Together: together{0, 3}}},
		"waiting": {Waiting: waitingFor([]int{1, 5, 9}, "5 > 4, \"so\"", "Go.")},
		"nobody":  {Waiting: &waitingMessage{Absent: []byte{}}},
		"table": {Table: &tableMessage{Job: strings.Repeat("0f", jobBytes), Generation: 1, Ranks: []seatCard{
			{Host: 0, Network: 0, Name: "a", Addresses: []netip.AddrPort{v4}}, {Host: 1, Network: 0, Name: "b", Addresses: []netip.AddrPort{v6}},
		}}},
		"got":     {Got: &struct{}{}},
		"failed":  {Failed: &failure{Rank: -1, reason: reason{Why: "so", Where: "here", Do: "Go."}}},
		"leaving": {Leaving: &leaving{reason{Why: "it's late"}}},
	}
}

func TestMessages(t *testing.T) {
	for name, m := range messages() {
		got, err := receive(bytes.NewReader(m.encode()), maxFromRank)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %+v, %v; expected %+v", name, got, err, m)
		}
	}
}

// What is beyond its bounds is refused, whoever says it.
func TestMessagesThatDoNotFit(t *testing.T) {
	long := strings.Repeat("x", maxWord+1)
	here := func(addresses string) string {
		return fmt.Sprintf(`{"here":{"version":"","host":"","network":"","name":"","pid":1,"addresses":[%s]}}`, addresses)
	}
	const fine = `"192.0.2.7:1"`
	if _, err := decode([]byte(here(fine))); err != nil {
		t.Fatal(err)
	}
	job := strings.Repeat("0f", jobBytes)
	rank := func(host, network int) string {
		return fmt.Sprintf(`{"host":%d,"network":%d,"name":"","addresses":[%s]}`, host, network, fine)
	}
	for _, text := range []string{
		``, `{}`, `[]`, `null`, `{"got":null}`, `{"got":{}} `, `{"got":{},"leaving":{"why":""}}`, `{"other":1}`, `{"got":{}`,
		here(``), here(`"192.0.2.7"`), here(`"node-1:80"`), here(`"192.0.2.7:0"`), here(`"0.0.0.0:1"`), here(`"[::]:1"`), here(`"224.0.0.1:1"`), here(`"[fe80::1%eth0]:1"`), here(`""`),
		here(strings.Repeat(fine+",", maxAddresses) + fine),
		`{"here":{"version":"` + long + `","addresses":[` + fine + `]}}`,
		`{"here":{"host":"` + long + `","addresses":[` + fine + `]}}`,
		`{"here":{"together":[],"addresses":[` + fine + `]}}`, `{"here":{"together":[2,1],"addresses":[` + fine + `]}}`,
		`{"here":{"together":[0,4096],"addresses":[` + fine + `]}}`, `{"here":{"together":[0,1,2],"addresses":[` + fine + `]}}`,
		`{"waiting":{"absent":"=="}}`, `{"waiting":{"absent":"` + strings.Repeat("AAAA", MaxSize/24+1) + `"}}`,
		`{"failed":{"rank":-2}}`, `{"failed":{"rank":4096}}`,
		`{"table":{"job":"0f"}}`, `{"table":{"job":"` + strings.Repeat("zz", jobBytes) + `"}}`,
		`{"table":{"job":"` + job + `","ranks":[` + rank(1, 0) + `]}}`,
		`{"table":{"job":"` + job + `","ranks":[` + rank(0, -1) + `]}}`,
		`{"table":{"job":"` + job + `","ranks":[` + rank(0, 0) + `,` + rank(0, 2) + `]}}`,
		`{"table":{"job":"` + job + `","ranks":[{"addresses":[]}]}}`,
		`{"table":{"job":"` + job + `","ranks":[` + strings.Repeat(rank(0, 0)+",", MaxSize) + rank(0, 0) + `]}}`,
	} {
		if m, err := decode([]byte(text)); !errors.Is(err, errMessage) {
			t.Errorf("%.100s: %+v, %v", text, m, err)
		}
	}
}

func TestWaitingFor(t *testing.T) {
	for _, ranks := range [][]int{nil, {0}, {7, 8}, {1, 4095}} {
		if w := waitingFor(ranks, "", ""); !slices.Equal(w.ranks(), ranks) || (&message{Waiting: w}).check() != nil {
			t.Errorf("%v became %v", ranks, w.ranks())
		}
	}
}

// A length is no reason to take memory; bytes are.
func TestLengthTakesNoMemory(t *testing.T) {
	head := binary.LittleEndian.AppendUint32(nil, 1<<30)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := receive(io.MultiReader(bytes.NewReader(head), bytes.NewReader(make([]byte, 1000))), 1<<30)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<10 {
		t.Errorf("%d bytes were taken for 1000", taken)
	}
	if _, err := receive(bytes.NewReader(head), 1<<30-1); !errors.Is(err, errMessage) {
		t.Errorf("beyond the limit: %v", err)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, ünï": "plain text, ünï", "two\nlines\x1b[31m": "two?lines?[31m", "bad\xff": "bad?", "0123456789abcdefg": "0123456789abcdef", "0123456789abcdeü": "0123456789abcde",
	} {
		most := 16
		if strings.Contains(in, "plain") || strings.Contains(in, "lines") {
			most = 100
		}
		if got := printable(in, most); got != want {
			t.Errorf("%q: %q, expected %q", in, got, want)
		}
	}
}

// FuzzMessage: nothing that is received does harm, and what is accepted is told
// in a form that is accepted again, to the same effect.
func FuzzMessage(f *testing.F) {
	for _, m := range messages() {
		f.Add(m.encode())
	}
	f.Add([]byte{3, 0, 0, 0, '{', '}'})
	f.Fuzz(func(t *testing.T, said []byte) {
		m, err := receive(bytes.NewReader(said), maxFromRank)
		if err != nil {
			return
		}
		again, err := receive(bytes.NewReader(m.encode()), 1<<20)
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%+v is told as %+v, %v", m, again, err)
		}
		if m.Table != nil {
			for r := range m.Table.Ranks {
				if v := m.Table.view(r, nil, netip.Addr{}, nil); len(v.Addresses) != len(m.Table.Ranks) || !slices.Contains(v.Near(), r) {
					t.Errorf("rank %d sees %+v", r, v)
				}
			}
		}
	})
}
