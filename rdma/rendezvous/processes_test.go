package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

func TestMain(m *testing.M) {
	fleet.Main(m, map[string]fleet.Role{"member": member, "holder": holder, "mourner": mourner})
}

func config(r *fleet.Rank) Config {
	return Config{Rank: r.Rank, Size: r.Size, Store: r.Store, Token: "secret"}
}

// member joins and does what it is told, one word a line.
func member(r *fleet.Rank) error {
	for range 2 { // what Go itself keeps open is there after the first time
		if h, err := Join(context.Background(), Config{Size: 1, Store: r.Store + "ff"}); err == nil {
			h.Close()
		}
	}
	spare := lowest(3) // those below are open for good
	defer spare.close()
	before := fleet.Holdings()
	h, err := Join(context.Background(), config(r))
	if err != nil {
		r.Say("failed %v", err)
		return nil
	}
	r.Say("joined")
	for {
		switch word := r.Hear(); word {
		case "gone": // waits until a rank is gone, without end
			var err error
			werr := h.Wait(context.Background(), 0, Policy{}, func() bool {
				for rank := range r.Size {
					if err = h.State(rank); err != nil {
						return true
					}
				}
				return false
			})
			r.Say("gone %v", errors.Join(err, werr))
		case "fetch": // waits for what is never announced
			err := h.Fetch(context.Background(), 0, Policy{}, "nothing", []int{(r.Rank + 1) % r.Size}, nil)
			r.Say("fetch %v", err)
		case "brief": // the same, within 50 ms
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			err := h.Fetch(ctx, 0, patient, "nothing", []int{(r.Rank + 1) % r.Size}, nil)
			cancel()
			r.Say("brief %v", err)
		case "announce":
			f, err := mem.NewFile("malt-test", 1)
			if err == nil {
				_, err = h.Announce("something", Region{Readers: []int{(r.Rank + 1) % r.Size}, Files: []*mem.File{f}})
			}
			r.Say("announce %v", err)
		case "starve": // fetches with room for no descriptor, for one, for three
			for _, room := range []int{0, 1, 3} {
				err := spare.starved(room, func() error {
					from := (r.Rank + r.Size - 1) % r.Size
					return h.Fetch(context.Background(), 0, Policy{}, "something", []int{from}, func(int, Region) error { return nil })
				})
				r.Say("room for %d: %v", room, strings.ReplaceAll(fmt.Sprint(err), "\n", "; "))
			}
		case "states":
			var all []string
			for rank := range r.Size {
				all = append(all, fmt.Sprint(h.State(rank)))
			}
			r.Say("states %s", strings.Join(all, "; "))
		case "close":
			err := h.Close()
			r.Say("closed %v %q", err, fleet.Leaks(before))
			return nil
		case "vanish":
			os.Exit(0)
		}
	}
}

// spares are descriptors, of nothing.
type spares []int

// lowest takes the lowest that are free.
func lowest(n int) (s spares) {
	for range n {
		fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			panic(err)
		}
		s = append(s, fd)
	}
	return s
}

func (s spares) close() {
	for _, fd := range s {
		_ = syscall.Close(fd)
	}
}

// starved runs f while this process can open that many of them and no other, whatever is
// closed meanwhile.
func (s spares) starved(room int, f func() error) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	less := limit
	less.Cur = uint64(s[0])
	if room > 0 {
		less.Cur = uint64(s[room-1] + 1)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &less); err != nil {
		return err
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	s[:room].close()
	defer func() { copy(s, lowest(room)) }()
	return f()
}

// holder joins, and takes a forked child's part: it keeps a copy of its socket
// open in a process that does not end with it.
func holder(r *fleet.Rank) error {
	if _, err := Join(context.Background(), config(r)); err != nil {
		return err
	}
	r.Say("joined")
	r.Hear()
	return nil
}

// members starts n ranks that have all joined.
func members(t *testing.T, n int) []*fleet.Process {
	f := fleet.Start(t, "member", n)
	for _, p := range f {
		p.Expect("joined")
	}
	return f
}

// soon fails the test unless p says a line with prefix in a second.
func soon(t *testing.T, p *fleet.Process, prefix string) string {
	t.Helper()
	took := fleet.Stopwatch()
	line, ok := p.Line(fleet.Patience)
	if d := took(); !ok || !strings.HasPrefix(line, prefix) || d > time.Second {
		t.Fatalf("said %q (%v) after %v, expected %q within a second", line, ok, d, prefix)
	}
	return line
}

func TestKilledRankIsDeadWithinASecond(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := members(t, n)
			victim := rand.IntN(n)
			for i, p := range f {
				if i == victim {
					continue
				}
				if (i+1)%n == victim {
					p.Tell("fetch")
				} else {
					p.Tell("gone")
				}
			}
			f[victim].Signal(syscall.SIGKILL)
			for i, p := range f {
				if i == victim {
					continue
				}
				line := soon(t, p, "")
				if !strings.Contains(line, fmt.Sprintf("rank %d is dead: its process %d has ended", victim, f[victim].Pid())) {
					t.Errorf("rank %d of %d said %q", i, n, line)
				}
			}
			for i, p := range f {
				if i != victim {
					p.Tell("close")
					p.Expect("closed <nil> []")
					p.End()
				}
			}
		})
	}
}

func TestEndWithoutLeavingIsDeath(t *testing.T) {
	f := members(t, 2)
	f[0].Tell("gone")
	f[1].Tell("vanish")
	if line := soon(t, f[0], "gone"); !strings.Contains(line, "rank 1 is dead") {
		t.Errorf("said %q", line)
	}
}

func TestStoppedRankIsNotDead(t *testing.T) {
	f := members(t, 3)
	f[1].Signal(syscall.SIGSTOP)
	f[0].Tell("brief") // from the stopped one
	if line := f[0].Expect("brief"); !strings.Contains(line, "waited for rank 1 to announce nothing: context deadline exceeded") {
		t.Errorf("fetching from a stopped rank: %q", line)
	}
	f[0].Tell("states")
	if line := f[0].Expect("states"); line != "<nil>; <nil>; <nil>" {
		t.Errorf("states %q, expected all alive", line)
	}
	f[2].Tell("close") // does not wait for the stopped one
	f[2].Expect("closed <nil> []")
	f[1].Signal(syscall.SIGCONT)
	f[1].Tell("states")
	if line := f[1].Expect("states"); line != "<nil>; <nil>; peer has left" {
		t.Errorf("states %q", line)
	}
	f[1].Signal(syscall.SIGSTOP)
	f[0].Tell("gone") // rank 2 has left: at once
	f[0].Expect("gone peer has left")
	f[1].Signal(syscall.SIGKILL) // also while stopped
	f[0].Tell("fetch")
	if line := soon(t, f[0], "fetch"); !strings.Contains(line, "rank 1 is dead") {
		t.Errorf("said %q", line)
	}
}

func TestDeathWhileJoining(t *testing.T) {
	store := fleet.NewStore()
	a := fleet.StartOne(t, "member", 0, 3, store)
	b := fleet.StartOne(t, "member", 1, 3, store)
	// Rank 1 has arrived once its socket is there and it waits for rank 2.
	for len(fleet.Sockets(store)) < 2 {
		time.Sleep(time.Millisecond)
	}
	for !joined(store, 1) {
		time.Sleep(time.Millisecond)
	}
	b.Signal(syscall.SIGKILL)
	if line := soon(t, a, "failed"); !strings.Contains(line, "joining: rank 1 is dead") {
		t.Errorf("rank 0 said %q", line)
	}
}

// joined asks rank 0's page, as rank 2 would, whether rank has arrived.
func joined(store string, rank int) bool {
	h := &Host{cfg: Config{Rank: 2, Size: 3, Store: store, Token: "secret"}}
	h.job, _ = h.cfg.job()
	h.members = h.cfg.members()
	if h.fetchPageOnce(context.Background()) != nil {
		return false
	}
	defer mem.Unmap(h.page)
	return h.page.state(rank).Load() >= joining
}

// Out of descriptors is an error that says so, not a wait.
func TestOutOfDescriptors(t *testing.T) {
	f := members(t, 2)
	f[0].Tell("announce")
	f[0].Expect("announce <nil>")
	f[1].Tell("starve")
	for room := range 2 {
		room := fmt.Sprintf("room for %d:", room)
		if line := soon(t, f[1], room); !strings.Contains(line, "too many open files") {
			t.Errorf("said %q", line)
		}
	}
	f[1].Expect("room for 3: <nil>") // what failed has taken nothing
	for _, p := range f {
		p.Tell("close")
		p.Expect("closed <nil> []")
	}
}

func TestNothingIsLeft(t *testing.T) {
	store := fleet.NewStore()
	var f []*fleet.Process
	for rank := range 3 {
		f = append(f, fleet.StartOne(t, "member", rank, 3, store))
	}
	for _, p := range f {
		p.Expect("joined")
	}
	if s := fleet.Sockets(store); len(s) < 3 {
		t.Errorf("sockets %v: the test looks in the wrong place", s)
	}
	for _, p := range f {
		p.Signal(syscall.SIGKILL)
	}
	for _, p := range f {
		if line, ok := p.Line(fleet.Patience); ok {
			t.Errorf("a killed rank said %q", line)
		}
	}
	for end := time.Now().Add(fleet.Patience); len(fleet.Sockets(store)) != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("sockets left: %v", fleet.Sockets(store))
		}
	}
	if left, _ := filepath.Glob("/dev/shm/*malt*"); left != nil {
		t.Errorf("left: %v", left)
	}
}

func TestRankTakenByAnotherProcess(t *testing.T) {
	store := fleet.NewStore()
	p := fleet.StartOne(t, "holder", 0, 1, store)
	p.Expect("joined")
	took := fleet.Stopwatch()
	_, err := Join(context.Background(), Config{Size: 1, Store: store})
	if !errors.Is(err, rdma.ErrRankTaken) || !strings.Contains(err.Error(), fmt.Sprintf("by process %d\n", p.Pid())) {
		t.Errorf("got %v; expected ErrRankTaken by process %d", err, p.Pid())
	}
	if d := took(); d > time.Second {
		t.Errorf("took %v", d)
	}
	p.Signal(syscall.SIGKILL)
	p.Line(fleet.Patience)
	for end := time.Now().Add(fleet.Patience); ; time.Sleep(time.Millisecond) { // the kernel frees the name with the process
		h, err := Join(context.Background(), Config{Size: 1, Store: store})
		if err == nil {
			h.Close()
			return
		}
		if !errors.Is(err, rdma.ErrRankTaken) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
