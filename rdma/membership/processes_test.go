package membership

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/rendezvous"
	"malt/rdma/vote"
)

// Ranks as processes, with the pages of package rendezvous. Hosts are groups of them that
// share a page, and talk by datagrams of this machine.

func TestMain(m *testing.M) { fleet.Main(m, map[string]fleet.Role{"member": member}) }

// datagrams is a Net whose kernel refuses what is sent to a process that has ended.
type datagrams struct {
	job    vote.Job
	rank   int
	store  string
	socket *net.UnixConn
	raw    syscall.RawConn
	m      *Members
	host   *rendezvous.Host
	gone   []atomic.Bool
	cut    []atomic.Int64 // by host: when it was cut off, in ns
}

func (d *datagrams) address(rank int) string { return fmt.Sprintf("%s/%d", d.store[6:], rank) }

func (d *datagrams) off(rank int) bool {
	return d.cut[d.job.Of[rank]].Load()+d.cut[d.job.Of[d.rank]].Load() != 0
}

func (d *datagrams) send(peer int, b []byte) {
	if d.off(peer) {
		return
	}
	err := d.raw.Control(func(fd uintptr) {
		err := unix.Sendto(int(fd), b, unix.MSG_DONTWAIT, &unix.SockaddrUnix{Name: "@" + d.address(peer)})
		if err == unix.ECONNREFUSED && !d.gone[peer].Swap(true) {
			d.m.Wake()
		}
	})
	if err != nil && !errors.Is(err, net.ErrClosed) { // beat goes on until the process has ended
		panic(err)
	}
}

func (d *datagrams) Post(peer int, k vote.Kind, arg uint32, body []byte) {
	b := binary.LittleEndian.AppendUint32([]byte{byte(d.rank), byte(k)}, arg)
	d.send(peer, append(b, body...))
}

func (d *datagrams) Doubted(peer int) bool {
	since := max(d.cut[d.job.Of[peer]].Load(), d.cut[d.job.Of[d.rank]].Load())
	return since > 0 && time.Now().UnixNano()-since > int64(doubtAfter)
}

func (d *datagrams) Gone(peer int) bool      { return d.gone[peer].Load() }
func (d *datagrams) Left(int) (uint64, bool) { return 0, false }
func (d *datagrams) Review()                 { d.host.RingOwn() }

// serve lands what comes, and beat finds out who has ended.
func (d *datagrams) serve() {
	b := make([]byte, 4096)
	for {
		n, err := d.socket.Read(b)
		if err != nil {
			return
		}
		if n < 6 || d.off(int(b[0])) {
			continue
		}
		if err := d.m.Land(int(b[0]), vote.Kind(b[1]), binary.LittleEndian.Uint32(b[2:]), b[6:n]); err != nil {
			panic(err)
		}
	}
}

func (d *datagrams) beat() {
	for range time.Tick(tick) {
		for rank, host := range d.job.Of {
			if host != d.job.Of[d.rank] {
				d.send(rank, nil)
			}
		}
	}
}

// member is a rank of a job whose hosts are its argument. It does what it is told.
func member(r *fleet.Rank) error {
	d := &datagrams{rank: r.Rank, store: r.Store, gone: make([]atomic.Bool, r.Size)}
	for _, host := range strings.Split(r.Args[0], ",") {
		h, _ := strconv.Atoi(host)
		d.job.Of = append(d.job.Of, h)
		d.job.Hosts = max(d.job.Hosts, h+1)
	}
	d.cut = make([]atomic.Int64, d.job.Hosts)
	own := d.job.Of[r.Rank]
	var near []int
	for rank, host := range d.job.Of {
		if host == own {
			near = append(near, rank)
		}
	}
	h, err := rendezvous.Join(context.Background(), rendezvous.Config{
		Rank: r.Rank, Size: r.Size, Store: fmt.Sprintf("%s%x", r.Store, own), Members: near, Hosts: d.job.Of,
		Elsewhere: func(rank int) error {
			if d.Gone(rank) {
				return &rdma.PeerError{Rank: rank, Kind: rdma.Ended, Err: errors.New("it has ended")}
			}
			return nil
		},
		Said: func(int) bool { return false },
	})
	if err != nil {
		return err
	}
	if d.socket, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@" + d.address(r.Rank), Net: "unixgram"}); err != nil {
		return err
	}
	if d.raw, err = d.socket.SyscallConn(); err != nil {
		return err
	}
	d.host = h
	h.Survive(1)
	d.m = New(Config{Job: d.job, Rank: r.Rank, Unreachable: unreachable}, h.Ballots(), d)
	var served sync.WaitGroup
	served.Go(d.serve)
	r.Say("joined")
	for {
		word, arg, _ := strings.Cut(r.Hear(), " ")
		n, _ := strconv.Atoi(arg)
		switch word {
		case "start": // all have joined
			d.m.Start()
			go d.beat()
			r.Say("started")
		case "await": // a rank that the job is to go on without
			go func() {
				err := h.Wait(context.Background(), 0, rendezvous.Policy{}, func() bool { return h.State(n) != nil })
				at := time.Now().UnixNano()
				r.Say("knows %d %v %v", at, h.View().Ranks, errors.Join(err, d.m.Out()))
			}()
			r.Say("awaits")
		case "cut": // a host
			d.cut[n].Store(time.Now().UnixNano())
		case "confirm": // within so many seconds
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(n)*time.Second)
			err := confirmed(ctx, d.m)
			cancel()
			r.Say("confirm %v", strings.ReplaceAll(fmt.Sprint(err), "\n", "; "))
		case "close":
			d.m.Close()
			err := h.Close()
			d.socket.Close()
			served.Wait()
			r.Say("closed %v", err)
			return nil
		}
	}
}

// A process is killed, or a host is cut off: the others know it, at the bells at which
// they sleep, and go on.
func TestProcesses(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts string
		dies  int   // a rank, or with cut a host
		rest  []int // ranks
		cut   bool
		stops bool // rank 0 is stopped, which would be the first to propose
	}{
		{"a rank of the first host", "0,0,1,1", 1, []int{0, 2, 3}, false, false},
		{"a rank of the second host", "0,0,1,1", 2, []int{0, 1, 3}, false, false},
		{"the first of two hosts", "0,1", 0, []int{1}, false, false},
		{"the second of two hosts", "0,1", 1, []int{0}, false, false},
		{"a host of three", "0,0,1,2", 2, []int{0, 1, 3}, false, false},
		{"a silent host of three", "0,0,1,2", 2, []int{0, 1, 2}, true, false},
		{"and the proposer is stopped", "0,0,0,1,2", 1, []int{0, 2, 3, 4}, false, true},
		{"a host, and the proposer is stopped", "0,0,1,2", 3, []int{0, 1, 2}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fleet.Start(t, "member", 1+strings.Count(c.hosts, ","), c.hosts)
			for _, p := range f {
				p.Expect("joined")
			}
			for _, p := range f {
				p.Tell("start")
				p.Expect("started")
			}
			victim := c.dies
			if c.cut {
				victim = len(f) - 1
			}
			for _, r := range c.rest {
				f[r].Tell(fmt.Sprint("await ", victim))
				f[r].Expect("awaits")
			}
			awake := c.rest
			if c.stops {
				f[0].Signal(syscall.SIGSTOP)
				awake = awake[1:]
			}
			began := time.Now()
			if c.cut {
				for _, p := range f {
					p.Tell(fmt.Sprint("cut ", c.dies))
				}
			} else {
				f[c.dies].Signal(syscall.SIGKILL)
			}
			var slowest time.Duration
			for _, r := range awake {
				at, what, _ := strings.Cut(f[r].Expect("knows"), " ")
				ns, _ := strconv.ParseInt(at, 10, 64)
				slowest = max(slowest, time.Unix(0, ns).Sub(began))
				if want := fmt.Sprint(c.rest, " <nil>"); what != want {
					t.Errorf("rank %d knows %q; expected %q", r, what, want)
				}
				f[r].Tell("confirm 30")
				f[r].Expect("confirm <nil>")
			}
			t.Log(slowest)
			if c.stops {
				f[0].Signal(syscall.SIGCONT)
				f[0].Expect("knows")
			}
			if c.cut {
				f[victim].Tell("confirm 1")
				f[victim].Expect("confirm no answer")
				c.rest = append(c.rest, victim)
			}
			for _, r := range c.rest {
				f[r].Tell("close")
				f[r].Expect("closed <nil>")
				f[r].End()
			}
		})
	}
}
