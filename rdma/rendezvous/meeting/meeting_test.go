package meeting

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"malt/internal/fleet"
	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/handshake"
)

func TestMain(m *testing.M) { fleet.Main(m, roles) }

// job is what n ranks have to know; rank 0 gets a socket that listens at address.
func job(t testing.TB, n int, address string) []Config {
	t.Helper()
	fd, store := handed(t, address)
	all := make([]Config, n)
	for r := range all {
		all[r] = Config{Rank: r, Size: n, Store: store, Token: "secret of " + t.Name(), Version: "1.2.3"}
	}
	all[0].StoreFD = []int{fd}
	return all
}

// result is what one rank's Meet returned.
type result struct {
	rank      int
	table     *Table
	listeners []net.Listener
	err       error
}

// start has a rank meet.
func start(ctx context.Context, c Config, results chan<- result) {
	go func() {
		t, ls, err := Meet(ctx, c)
		results <- result{c.Rank, t, ls, err}
	}()
}

// meetAll has all ranks meet, in that order, and returns what came of it by rank.
func meetAll(t testing.TB, all []Config, order []int) []result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	results := make(chan result)
	for _, r := range order {
		start(ctx, all[r], results)
	}
	by := make([]result, len(all))
	for range order {
		r := <-results
		by[r.rank] = r
	}
	return by
}

func ascending(n int) (order []int) {
	for r := range n {
		order = append(order, r)
	}
	return order
}

// checkTable asserts that what every rank has fits: the same job and hosts, and
// addresses at which the ranks listen.
func checkTable(t *testing.T, by []result, hosts []int) {
	t.Helper()
	for rank, r := range by {
		if r.err != nil {
			t.Fatalf("rank %d: %v", rank, r.err)
		}
		if r.table.Rank != rank || r.table.Job != by[0].table.Job || len(r.table.Job) != 32 || r.table.Generation != 1 {
			t.Errorf("rank %d: %+v", rank, r.table)
		}
		if !slices.Equal(r.table.Hosts, hosts) {
			t.Errorf("rank %d: hosts %v, expected %v", rank, r.table.Hosts, hosts)
		}
		for peer, addresses := range r.table.Addresses {
			var at []string
			for _, l := range by[peer].listeners {
				at = append(at, l.Addr().String())
			}
			if !slices.Equal(addresses, at) || len(by) > 1 && len(at) == 0 {
				t.Errorf("rank %d: rank %d is at %v, and listens at %v", rank, peer, addresses, at)
			}
		}
	}
	for _, r := range by {
		for _, l := range r.listeners {
			l.Close()
		}
	}
}

func TestMeet(t *testing.T) {
	for _, hosts := range [][]int{
		{0}, {0, 0}, {0, 1}, {0, 1, 2}, {0, 1, 0}, {0, 0, 1, 1, 1}, {0, 1, 0, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 1, 0, 0, 1, 1, 2},
	} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			check := nothingLeft(t)
			all := job(t, len(hosts), "127.0.0.1:0")
			for r, h := range hosts {
				all[r].Host = fmt.Sprintf("host %d", h)
			}
			order := ascending(len(all))
			slices.Reverse(order) // rank 0 comes last
			by := meetAll(t, all, order)
			checkTable(t, by, hosts)
			for rank, r := range by {
				near := 0
				for _, h := range hosts {
					if h == hosts[rank] {
						near++
					}
				}
				if len(r.table.Near()) != near || !slices.Contains(r.table.Near(), rank) {
					t.Errorf("rank %d is near %v", rank, r.table.Near())
				}
			}
			check()
		})
	}
}

func TestMeetOverIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	l.Close()
	by := meetAll(t, job(t, 3, "[::1]:0"), ascending(3))
	for rank, r := range by {
		if r.err == nil && !strings.HasPrefix(r.table.Addresses[1][0], "[::1]:") {
			t.Errorf("rank %d: rank 1 is at %v", rank, r.table.Addresses[1])
		}
	}
	checkTable(t, by, []int{0, 0, 0})
}

func TestMeetOverTLS(t *testing.T) {
	all := job(t, 3, "127.0.0.1:0")
	for r := range all {
		all[r].Encrypt = handshake.Always
	}
	checkTable(t, meetAll(t, all, ascending(3)), []int{0, 0, 0})
}

// Who waits knows who is missing, and hears of it when that changes.
func TestProgress(t *testing.T) {
	t.Parallel()
	all := job(t, 4, "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	heard := make([]chan []int, 4)
	for r := range all {
		heard[r] = make(chan []int, 1000)
		all[r].Report = func(p Progress) { heard[r] <- p.Absent }
	}
	expect := func(rank int, absent ...int) {
		t.Helper()
		for {
			select {
			case got := <-heard[rank]:
				if slices.Equal(got, absent) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("rank %d has not heard that ranks %v are missing", rank, absent)
			}
		}
	}
	// The socket is there, but nobody answers yet.
	results := make(chan result)
	start(ctx, all[2], results)
	start(ctx, all[0], results)
	expect(0, 1, 2, 3)
	expect(0, 1, 3)
	expect(2, 1, 3)
	start(ctx, all[1], results)
	for _, r := range []int{0, 1, 2} {
		expect(r, 3)
	}
	start(ctx, all[3], results)
	expect(3, 0)
	expect(3)
	by := make([]result, 4)
	for range 4 {
		r := <-results
		by[r.rank] = r
	}
	checkTable(t, by, []int{0, 0, 0, 0})
}

// The ranks can come in any order, and long before rank 0.
func TestRankZeroComesLast(t *testing.T) {
	store := freePort(t)
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	results := make(chan result)
	refused := make(chan Progress, 100)
	for r := 1; r < 3; r++ {
		c := Config{Rank: r, Size: 3, Store: store, Token: "t"}
		c.Report = func(p Progress) {
			if strings.Contains(p.Detail, "nothing listens") {
				refused <- p
			}
		}
		start(ctx, c, results)
	}
	if p := <-refused; !slices.Equal(p.Absent, []int{0}) || !strings.Contains(p.Detail, "nothing listens at "+store) {
		t.Errorf("%+v", p)
	}
	start(ctx, Config{Rank: 0, Size: 3, Store: store, Token: "t"}, results)
	for range 3 {
		r := <-results
		if r.err != nil {
			t.Errorf("rank %d: %v", r.rank, r.err)
		}
		for _, l := range r.listeners {
			l.Close()
		}
	}
}

// What the ranks were told differently is an error on all, with both values.
func TestDisagreements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(c *Config)
		says   []string // at both ends
	}{
		"size":      {func(c *Config) { c.Size = 7 }, []string{"one of 7", "one of 3", "MALT_SIZE"}},
		"version":   {func(c *Config) { c.Version = "1.2.4" }, []string{"1.2.4", "1.2.3", "same version"}},
		"launchers": {func(c *Config) { c.Together = "1-2" }, []string{"along with ranks 1 to 2", "along with ranks 0 to 1", "same -n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := job(t, 3, "127.0.0.1:0")
			all[0].Together, all[1].Together, all[2].Together = "0-1", "0-1", "2-2"
			c.change(&all[2])
			for rank, r := range meetAll(t, all, ascending(3)) {
				if !errors.Is(r.err, rdma.ErrConfig) {
					t.Fatalf("rank %d: %v", rank, r.err)
				}
				if e := say.Of(r.err); e.What == "" || e.Where == "" || e.Do == "" || strings.Contains(e.Where+e.Do, "?") {
					t.Errorf("rank %d: %q; expected what happened, where, and what to do", rank, r.err)
				}
				for _, word := range append(c.says, "rank 2", "process", "127.0.0.1", hostName()) {
					if !strings.Contains(r.err.Error(), word) {
						t.Errorf("rank %d: %v; expected %q", rank, r.err, word)
					}
				}
			}
		})
	}
}

// A rank that comes just after a meeting has failed hears why, too.
func TestLateForAFailure(t *testing.T) {
	t.Parallel()
	all := job(t, 3, "127.0.0.1:0")
	all[2].Size = 7
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	results := make(chan result)
	start(ctx, all[0], results)
	start(ctx, all[2], results)
	if r := <-results; r.rank != 2 {
		t.Errorf("rank %d was first: %v", r.rank, r.err)
	}
	start(ctx, all[1], results)
	for range 2 {
		r := <-results
		if !errors.Is(r.err, rdma.ErrConfig) || !strings.Contains(r.err.Error(), "one of 7") {
			t.Errorf("rank %d: %v", r.rank, r.err)
		}
	}
}

// Another process that comes as a rank that is there is sent away; the others are
// told, and go on.
func TestRankTwice(t *testing.T) {
	t.Parallel()
	all := job(t, 3, "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	told := make(chan string, 1000)
	all[0].Report = func(p Progress) { told <- p.Detail + p.Do }
	all[1].Report = func(p Progress) { told <- p.Detail }
	results := make(chan result)
	start(ctx, all[0], results)
	start(ctx, all[1], results)
	start(ctx, all[1], results)
	r := <-results
	if !errors.Is(r.err, rdma.ErrRankTaken) || !strings.Contains(r.err.Error(), "MALT_RANK") {
		t.Fatalf("%v", r.err)
	}
	for range 2 {
		for !strings.Contains(<-told, "two processes joined as rank 1") {
		}
	}
	start(ctx, all[2], results)
	for range 3 {
		if r := <-results; r.err != nil {
			t.Errorf("rank %d: %v", r.rank, r.err)
		} else {
			for _, l := range r.listeners {
				l.Close()
			}
		}
	}
}

// Two jobs at one port: who has another token is told so, and the job goes on.
func TestOtherToken(t *testing.T) {
	all := job(t, 2, "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	results := make(chan result)
	told := make(chan string, 1000)
	all[0].Report = func(p Progress) { told <- p.Detail + p.Do }
	start(ctx, all[0], results)
	other := all[1]
	other.Token = "another"
	_, _, err := Meet(ctx, other)
	if !errors.Is(err, rdma.ErrConfig) || !strings.Contains(err.Error(), "MALT_TOKEN") || !strings.Contains(err.Error(), all[0].Store) {
		t.Errorf("%v", err)
	}
	for {
		if d := <-told; strings.Contains(d, "rank 1 of 2") && strings.Contains(d, "MALT_TOKEN") {
			break
		}
	}
	start(ctx, all[1], results)
	for range 2 {
		if r := <-results; r.err != nil {
			t.Errorf("rank %d: %v", r.rank, r.err)
		} else {
			for _, l := range r.listeners {
				l.Close()
			}
		}
	}
}
