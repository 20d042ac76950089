package rendezvous

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"malt/rdma"
	"malt/rdma/vote"
)

// apart is three ranks of this machine in a job of five on two hosts. far is what is known
// of rank 3, and said whether it says so itself.
func apart(t *testing.T, far *error, said *bool) []*Host {
	t.Helper()
	return meetAs(t, Config{
		Size: 5, Store: store(t), Token: "secret", Members: []int{0, 1, 2}, Hosts: []int{0, 0, 0, 1, 1},
		Elsewhere: func(rank int) error {
			if rank == 3 {
				return *far
			}
			return nil
		},
		Said: func(rank int) bool { return *said },
	})
}

// On several hosts a death is what the hosts have decided; what a rank has said itself is
// not.
func TestStatesOnHosts(t *testing.T) {
	ended := &rdma.PeerError{Rank: 3, Kind: rdma.Ended, Err: errors.New("nobody listens")}
	isDead := func(err error, kind rdma.Death) bool {
		var peer *rdma.PeerError
		return errors.As(err, &peer) && peer.Kind == kind
	}
	var far error
	said := false
	hosts := apart(t, &far, &said)
	h := hosts[0]
	woken := 0
	b := h.Ballots()
	b.OnDeath(func() { woken++ })
	if v := h.View(); v.Generation != 1 || !slices.Equal(v.Ranks, []int{0, 1, 2, 3, 4}) {
		t.Errorf("the first view is %v", v)
	}
	far = ended
	if err := h.State(3); err != ended {
		t.Errorf("before Survive: %v", err)
	}
	for _, h := range hosts {
		h.Survive(3)
	}
	if err := h.State(3); err != nil {
		t.Errorf("before it is decided: %v", err)
	}
	said = true
	if err := h.State(3); err != ended {
		t.Errorf("its own last word: %v", err)
	}
	said, far = false, rdma.ErrLeft
	if err := h.State(3); err != rdma.ErrLeft {
		t.Errorf("it has left: %v", err)
	}

	h.deaths.publish(1)
	if err := h.State(1); err != nil || woken != 1 {
		t.Errorf("a rank of this host: %v, woken %d times", err, woken)
	}
	if !b.Enter() || !b.Living().Equals(vote.SetOf(5, 0, 2)) {
		t.Errorf("ranks %b live", b.Living())
	}
	bells := h.page.bell(2, 0).Load()
	b.Learn(vote.View{Generation: 2, Members: vote.Members{Hosts: vote.Everyone(2), Ranks: vote.SetOf(5, 0, 2, 3, 4)}})
	if h.page.bell(2, 0).Load() == bells {
		t.Error("a new view rings nobody")
	}
	if err := hosts[2].State(1); !isDead(err, rdma.Ended) {
		t.Errorf("once it is decided: %v", err)
	}
	far = nil
	if err := h.State(3); err != nil {
		t.Errorf("it is in the view: %v", err)
	}
	b.Learn(vote.View{Generation: 3, Members: vote.Members{Hosts: vote.SetOf(2, 0), Ranks: vote.SetOf(5, 0, 2)}})
	b.Exit()
	if err := h.State(3); !isDead(err, rdma.Unreachable) || !strings.Contains(err.Error(), "gone on without it") {
		t.Errorf("left out, and nothing is known of it: %v", err)
	}
	far = ended
	if err := h.State(3); err != ended {
		t.Errorf("left out, and it has ended: %v", err)
	}
	if v := h.View(); v.Generation != 2 || !v.Has(3) || v.Has(1) {
		t.Errorf("of two ranks, where three are needed, the view is %v", v)
	}
	if v := hosts[1].View(); v.Generation != 1 {
		t.Errorf("a rank that has not looked meanwhile keeps %v", v)
	}
	if v := b.View(); v.Generation != 3 {
		t.Errorf("votes go on from %v", v)
	}
	hosts[2].Close()
	if err := h.State(2); err != rdma.ErrLeft || !b.Living().Has(2) {
		t.Errorf("who leaves stays in the view: %v", err)
	}
	hosts[1].Abort(rdma.HasFailed(1, "never told"))
	h.Close()
	if b.Enter() {
		t.Error("a page that is not mapped any more was entered")
	}
}

func TestHostsAreChecked(t *testing.T) {
	nobody, never := func(int) error { return nil }, func(int) bool { return false }
	for _, c := range []struct {
		Config
		want string
	}{
		{Config{Hosts: []int{0, 0, 1}, Members: []int{0, 1}}, "nobody to ask"},
		{Config{Hosts: []int{0, 0}, Members: []int{0, 1}, Elsewhere: nobody, Said: never}, "the host of each"},
		{Config{Hosts: []int{0, 1, 0}, Members: []int{0, 1}, Elsewhere: nobody, Said: never}, "members [0 1]"},
		{Config{Hosts: []int{0, 0, 3}, Members: []int{0, 1}, Elsewhere: nobody, Said: never}, "rank 2 on host 3"},
	} {
		c.Config.Size, c.Config.Store = 3, "local:1"
		if _, err := c.job(); !errors.Is(err, rdma.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; expected %q", c.Config, err, c.want)
		}
	}
	all := Config{Size: 2, Store: "local:1", Hosts: []int{0, 0}}
	if _, err := all.job(); err != nil || all.Hosts != nil {
		t.Errorf("all ranks are here: %v, hosts %v", err, all.Hosts)
	}
}
