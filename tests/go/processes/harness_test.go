package processes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"malt/graphs"
	"malt/libmalt"
	"malt/libmalt/rule"
	"malt/rdma"
)

// The harness itself: what it looks for, it finds.

func TestPlansArePure(t *testing.T) {
	seen := map[string]bool{}
	for n := range uint64(600) {
		l := lot{n / 3, n%3 == 1, n%3 == 2}
		a, b := newPlan(l), newPlan(l)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%v gives two plans:\n%v\n%v", l, a, b)
		}
		_, text, _ := strings.Cut(a.String(), ":")
		if seen[text] {
			t.Errorf("%v gives the plan of another:%s", l, text)
		}
		seen[text] = true
	}
}

// TestPlansAreFair: a schedule that broke MALT's rules would prove nothing. A
// scatter names receivers only. In bsp and notify-ack a scatter is not further
// ahead of the gathers than allowed, no gather ahead of the scatters.
func TestPlansAreFair(t *testing.T) {
	for n := range uint64(900) {
		l := lot{n / 3, n%3 == 1, n%3 == 2}
		p := newPlan(l)
		for i := range p.phases {
			ph := &p.phases[i]
			for r := range ph.ops {
				if err := ph.fair(r, p.base(i)); err != nil {
					t.Errorf("%v, phase %d, rank %d: %v", l, i+1, r, err)
				}
			}
		}
	}
}

func (ph *planPhase) fair(rank int, base uint64) error {
	var sent, taken uint64
	for _, o := range ph.ops[rank] {
		if o.kind == scatter || o.kind == syncAll {
			sent++
			if sent > taken && !ph.mode.MayScatter(sent-taken-1) {
				return fmt.Errorf("scatter %d after %d gathers in %s", sent, taken, ph.mode)
			}
			for _, to := range o.to {
				if to == rank || !ph.meant(rank, base, base+sent, to) {
					return fmt.Errorf("scatter %d goes to rank %d, which does not receive it", sent, to)
				}
			}
		}
		if o.kind != scatter {
			taken++
			if ph.mode.Boxes() != rdma.Newest && taken > sent {
				return fmt.Errorf("gather %d after %d scatters in %s", taken, sent, ph.mode)
			}
		}
	}
	return nil
}

// TestObserverFinds plants each fault among good updates.
func TestObserverFinds(t *testing.T) {
	all, err := graphs.Parse("all", 3)
	if err != nil {
		t.Fatal(err)
	}
	ops := []op{{kind: scatter}, {kind: scatter, to: []int{2}}, {kind: scatter}, {kind: scatter}}
	update := func(rank int, clock, own uint64, damage func([]byte)) libmalt.Update {
		b := make([]byte, 400)
		fill(b, 4, value(rank, clock))
		if damage != nil {
			damage(b)
		}
		return libmalt.Update{Data: b, Rank: rank, Clock: clock, Age: int64(own) - int64(clock)}
	}
	read := func(b []byte) (float64, bool, error) { return constant(b, 4) }
	type gather struct {
		own uint64
		us  []libmalt.Update
	}
	good := func(rank int, clock, own uint64) libmalt.Update { return update(rank, clock, own, nil) }
	for _, c := range []struct {
		fault, mode, want string // want: "" for none
		gathers           []gather
	}{
		{"none", "async", "", []gather{{11, []libmalt.Update{good(1, 11, 11), good(2, 11, 11)}}, {12, []libmalt.Update{good(1, 13, 12)}}}},
		{"torn", "async", "G3", []gather{{11, []libmalt.Update{update(1, 11, 11, func(b []byte) { fill(b[200:], 4, value(1, 13)) })}}}},
		{"torn in the last element", "async", "G3", []gather{{11, []libmalt.Update{update(1, 11, 11, func(b []byte) { b[399]++ })}}}},
		{"another's", "async", "G3", []gather{{11, []libmalt.Update{update(1, 11, 11, func(b []byte) { fill(b, 4, value(2, 11)) })}}}},
		{"repeated", "async", "G2", []gather{{11, []libmalt.Update{good(1, 11, 11)}}, {11, []libmalt.Update{good(1, 11, 11)}}}},
		{"older after newer", "async", "G2", []gather{{11, []libmalt.Update{good(1, 13, 11)}}, {11, []libmalt.Update{good(1, 11, 11)}}}},
		{"twice in one gather", "async", "each once", []gather{{11, []libmalt.Update{good(1, 11, 11), good(1, 13, 11)}}}},
		{"for another rank", "async", "not for this rank", []gather{{12, []libmalt.Update{good(1, 12, 12)}}}},
		{"never sent", "async", "not for this rank", []gather{{12, []libmalt.Update{good(1, 15, 12)}}}},
		{"of the phase before", "async", "counts as seen", []gather{{11, []libmalt.Update{good(1, 10, 11)}}}},
		{"wrong age", "async", "age", []gather{{12, []libmalt.Update{good(1, 11, 13)}}}},
		{"within the bound", "ssp:2", "", []gather{{13, []libmalt.Update{good(1, 11, 13)}}}},
		{"out of bound", "ssp:2", "G7", []gather{{14, []libmalt.Update{good(1, 11, 14)}}}},
		{"none, in lock-step", "bsp", "", []gather{{11, []libmalt.Update{good(1, 11, 11), good(2, 11, 11)}}, {12, nil}}},
		{"lost, in lock-step", "bsp", "G2", []gather{{11, []libmalt.Update{good(2, 11, 11)}}}},
		{"another clock, in lock-step", "bsp", "G2", []gather{{12, []libmalt.Update{good(1, 11, 12)}}}},
		{"lost, in a queue", "notify-ack", "G2", []gather{{11, []libmalt.Update{good(1, 11, 11), good(2, 11, 11)}}, {12, nil}, {13, []libmalt.Update{good(1, 13, 13)}}}},
		{"skipped, in a queue", "notify-ack", "G2", []gather{{11, []libmalt.Update{good(1, 13, 11), good(2, 11, 11)}}}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			mode, err := rule.Parse(c.mode)
			if err != nil {
				t.Fatal(err)
			}
			o := &observer{planPhase: &planPhase{mode: mode, graph: all, ops: [][]op{ops, ops, ops}}, me: 0, base: 10, last: []uint64{10, 10, 10}}
			err = nil
			for i, g := range c.gathers {
				if err != nil {
					t.Fatalf("gather %d: %v", i, err)
				}
				err = o.check(g.own, g.us, read)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestLeftoversAreFound: each kind, while the job's ranks still run.
func TestLeftoversAreFound(t *testing.T) {
	x := newTrial(t, 2, claim{Graph: "all", Mode: "async", Elements: 10})
	x.until("all are at work", func() bool { return x.others(-1, func(r int) bool { return x.word(r, gathers) > 0 }) })
	find := func(what string) {
		t.Helper()
		if err := x.leftovers(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s is left behind; found: %v", what, err)
		}
	}
	find(fmt.Sprint("process ", x.ranks[1].cmd.Process.Pid))
	find("@malt-" + x.id + "-0")
	x.killAll()
	if err := x.leftovers(); err != nil {
		t.Error(err)
	}
	file := filepath.Join(x.dir, "left")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	find(file)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join("/dev/shm", x.id)
	if err := os.WriteFile(shared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	find(shared)
	if err := os.Remove(shared); err != nil {
		t.Fatal(err)
	}
}

// TestLeftoversOnHostsAreFound: a host has files and sockets of its own.
func TestLeftoversOnHostsAreFound(t *testing.T) {
	hosts := hostsFor(t)
	x := newTrialAt(t, 3, claim{Graph: "all", Mode: "async", Elements: 10}, site{hosts: hosts[:2], places: []int{0, 1, 1}, transport: "auto"})
	x.until("all are at work", func() bool { return x.others(-1, func(r int) bool { return x.word(r, gathers) > 0 }) })
	find := func(h *host, want string) {
		t.Helper()
		if left, err := h.leftovers(); err != nil || !strings.Contains(strings.Join(left, "\n"), want) {
			t.Errorf("on host %s something with %q is left; found: %v, %v", h.Name, want, left, err)
		}
	}
	find(hosts[0], " 0A ")   // listens
	find(hosts[0], " 01 ")   // connected
	find(hosts[1], "@malt-") // where ranks of one host meet
	x.killAll()
	if err := x.leftovers(); err != nil {
		t.Error(err)
	}
	if b, err := hosts[1].command("touch", "/dev/shm/left").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	find(hosts[1], "left")
	if b, err := hosts[1].command("rm", "/dev/shm/left").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
}

// TestOnHostsThatArePoweredOff: all ranks there are killed, without a word to the
// others, and after calm the host is as new.
func TestOnHostsThatArePoweredOff(t *testing.T) {
	hosts := hostsFor(t)[:2]
	at := site{hosts: hosts, places: []int{0, 1, 1}, transport: "auto"}
	for range 2 {
		x := newTrialAt(t, 3, claim{Graph: "all", Mode: "bsp", Elements: 10}, at)
		x.until("all are at work", func() bool { return x.others(-1, func(r int) bool { return x.word(r, gathers) > 0 }) })
		if err := hosts[0].wires.apply("off:" + hosts[1].Name); err != nil {
			t.Fatal(err)
		}
		for _, p := range x.ranks[1:] {
			<-p.ended
			if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
				t.Errorf("rank %d: %v", p.rank, p.cmd.ProcessState)
			}
		}
		if x.ranks[0].hasEnded() {
			t.Errorf("rank 0 has heard of it: %s", &x.ranks[0].output)
		}
		x.killAll()
		if err := errors.Join(x.leftovers(), calm(hosts)); err != nil {
			t.Error(err)
		}
	}
}

func TestInventoryFinds(t *testing.T) {
	if err := warmUp(); err != nil {
		t.Fatal(err)
	}
	before, err := takeInventory()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "@malt-test-inventory")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { <-done }()
	now, err := takeInventory()
	if err != nil {
		t.Fatal(err)
	}
	more := now.more(before)
	for _, want := range []string{"open file left", "1 goroutines more"} {
		if more == nil || !strings.Contains(more.Error(), want) {
			t.Errorf("%q is not found: %v", want, more)
		}
	}
	close(done)
	l.Close()
	if err := backTo(before); err != nil {
		t.Error(err)
	}
}

// TestHangShowsWhere: the report on a schedule that hangs has the activity and
// the stacks of its ranks, also of one that is stopped.
func TestHangShowsWhere(t *testing.T) {
	x := newTrial(t, 2, claim{Graph: "all", Mode: "bsp", Elements: 10})
	x.until("all are at work", func() bool { return x.others(-1, func(r int) bool { return x.word(r, gathers) > 0 }) })
	if !x.ranks[1].stop() {
		t.Fatal("rank 1 has ended")
	}
	at := x.word(0, gathers)
	x.until("rank 0 waits for it", func() bool {
		return x.word(0, gathers) <= at+2 && x.word(0, activity) == int64(gathering) && x.word(0, begun) > x.word(1, scatters)
	})
	text := x.stacks()
	for _, want := range []string{"is in a gather", "--- rank 0", "--- rank 1", "processes.(*claimant).exchange", "boxes.(*Boxes).Begin"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report on a hang lacks %q:\n%s", want, text)
		}
	}
	for _, p := range x.ranks {
		select {
		case <-p.ended:
		case <-time.After(patience):
			t.Errorf("rank %d still runs", p.rank)
		}
	}
}

func TestCutsThatFollowEachOtherAreOne(t *testing.T) {
	s := func(from, to float64) span { return span{time.Duration(from * 1e9), time.Duration(to * 1e9)} }
	for _, c := range []struct {
		cuts []span
		want time.Duration
	}{
		{nil, 0},
		{[]span{s(5, 6), s(1, 3)}, 2 * time.Second},
		{[]span{s(3, 4), s(1, 2.5)}, 3 * time.Second},
		{[]span{s(1, 4), s(2, 3), s(9, 9.5)}, 3 * time.Second},
	} {
		if got := longest(c.cuts); got != c.want {
			t.Errorf("%v: %v, expected %v", c.cuts, got, c.want)
		}
	}
}
