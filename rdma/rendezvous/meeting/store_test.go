package meeting

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"malt/internal/fleet"
	"malt/rdma"
)

func TestParseStore(t *testing.T) {
	for in, want := range map[string]string{
		"node-1:29500":                    "[node-1:29500]",
		"10.0.0.1:1, [fd00::1]:65535,h:2": "[10.0.0.1:1 [fd00::1]:65535 h:2]",
		"[fe80::1%eth0]:7":                "[[fe80::1%eth0]:7]",
		"":                                "expected host:port", "node-1": "expected host:port", "node-1:": "expected host:port", ":29500": "expected host:port",
		"h:0": "expected host:port", "h:65536": "expected host:port", "h:http": "expected host:port", "h:1,": "expected host:port", "fd00::1:7": "expected host:port",
		strings.Repeat("h:1,", maxPlaces) + "h:1": "the limit is 16",
	} {
		places, err := parseStore(in)
		got := fmt.Sprint(places)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s; expected %s", in, got, want)
		}
	}
}

func TestLoopbackPlaces(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.1.1": true, "::1": true, "::ffff:127.0.0.1": true, "localhost": true, "Localhost.": true, "a.localhost": true, "ip6-localhost": true,
		"node-1": false, "10.0.0.1": false, "localhost.example.org": false, "notlocalhost": false, "::": false,
	} {
		if got := (place{host, 1}).loopback(); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"size 0":                 func(c *Config) { c.Size = 0 },
		"1 to 4096":              func(c *Config) { c.Size = MaxSize + 1 },
		"rank 2":                 func(c *Config) { c.Rank = 2 },
		"expected 0 to 1":        func(c *Config) { c.Rank = -1 },
		"MALT_STORE_FD":          func(c *Config) { c.StoreFD = []int{5} },
		"without a token":        func(c *Config) { c.Token = "" },
		"the limit is 128 bytes": func(c *Config) { c.Version = strings.Repeat("1", maxWord+1) },
		"MALT_STORE":             func(c *Config) { c.Store = "local:5eed" },
		"MALT_INTERFACE":         func(c *Config) { c.Interface = "," },
		"MALT_TOGETHER":          func(c *Config) { c.Together = "2-3" },
		"together=1":             func(c *Config) { c.Together = "1" },
		"together=1-0":           func(c *Config) { c.Together = "1-0" },
		"together=0-4096":        func(c *Config) { c.Together = "0-4096" },
	} {
		c := Config{Rank: 1, Size: 2, Store: "127.0.0.1:1", Token: "t"}
		change(&c)
		_, _, err := Meet(context.Background(), c)
		if !errors.Is(err, rdma.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// A job of one needs no store, and gives back what it was handed.
func TestAlone(t *testing.T) {
	fd, _ := handed(t, "127.0.0.1:0")
	table, ls, err := Meet(context.Background(), Config{Size: 1, StoreFD: []int{fd}})
	if err != nil || len(ls) != 0 || len(table.Hosts) != 1 || len(table.Near()) != 1 {
		t.Errorf("%+v, %v, %v", table, ls, err)
	}
	if _, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN); !errors.Is(err, syscall.EBADF) {
		t.Errorf("descriptor %d is still open: %v", fd, err)
	}
}

// names is a lookup with a table.
func names(table map[string]string) lookup {
	return func(_ context.Context, host string) (ips []netip.Addr, err error) {
		if ip, err := netip.ParseAddr(host); err == nil {
			return []netip.Addr{ip}, nil
		}
		for _, s := range strings.Fields(table[host]) {
			ips = append(ips, netip.MustParseAddr(s))
		}
		if ips == nil {
			err = &net.DNSError{Err: "no such host", Name: host}
		}
		return ips, err
	}
}

// Rank 0 listens where the store says, if that is an address of its host, and
// else at all that it has, each by itself, with a note that says why.
func TestOpenStore(t *testing.T) {
	own := []address{{netip.MustParseAddr("127.0.0.1"), "lo"}, {netip.MustParseAddr("127.0.0.2"), "lo"}}
	lookup := names(map[string]string{"localhost": "127.0.0.1 ::1", "debian": "127.0.1.1", "elsewhere": "192.0.2.1"})
	for _, c := range []struct{ hosts, chosen, listens, note string }{
		{"127.0.0.1", "", "127.0.0.1", ""},
		{"127.0.1.1", "", "127.0.1.1", ""}, // told so
		{"localhost", "", "127.0.0.1", ""},
		{"debian", "", "127.0.0.1 127.0.0.2 127.0.1.1", "debian (127.0.1.1) is not an address"},
		{"elsewhere", "", "127.0.0.1 127.0.0.2", "elsewhere (192.0.2.1) is not an address at which others could reach the host of rank 0"},
		{"nowhere", "", "127.0.0.1 127.0.0.2", "cannot resolve nowhere (lookup nowhere: no such host)"},
		{"nowhere 127.0.0.1", "", "127.0.0.1", ""},
		{"127.0.0.1 127.0.0.1", "", "127.0.0.1", ""},
		{"debian", "127.0.0.2", "127.0.0.2 127.0.1.1", "127.0.1.1"},
		{"0.0.0.0", "127.0.0.2", "127.0.0.2", "0.0.0.0 is not an address"},
		{"nowhere", "^127.0.0.2", "127.0.0.1", "cannot resolve nowhere"},
	} {
		var places []place
		for _, h := range strings.Fields(c.hosts) {
			places = append(places, place{h, freshPort(t)})
			places[len(places)-1].port = places[0].port
		}
		chosen, err := parseInterface(c.chosen)
		if err != nil {
			t.Fatal(err)
		}
		s, err := openStore(context.Background(), places, own, chosen, lookup)
		if err != nil {
			t.Errorf("%s: %v", c.hosts, err)
			continue
		}
		if s.note != "" && !strings.HasSuffix(s.note, "; rank 0 listens at "+s.String()) {
			t.Errorf("%s: %q; it listens at %v", c.hosts, s.note, s)
		}
		var listens []string
		for _, l := range s.listeners {
			ip := l.Addr().(*net.TCPAddr).AddrPort().Addr().Unmap()
			if ip.IsLoopback() && ip.Is6() {
				continue // localhost, where there is IPv6
			}
			listens = append(listens, ip.String())
		}
		s.close()
		if got := strings.Join(listens, " "); got != c.listens {
			t.Errorf("%s: rank 0 listens at %s, expected %s", c.hosts, got, c.listens)
		}
		if !strings.Contains(s.note, c.note) || (s.note == "") != (c.note == "") {
			t.Errorf("%s: %q", c.hosts, s.note)
		}
	}
}

// A store that means addresses of this host, none of which MALT_INTERFACE allows, is refused.
func TestStoreThatMayNotListen(t *testing.T) {
	own := []address{{netip.MustParseAddr("127.0.0.1"), "lo"}, {netip.MustParseAddr("10.0.0.1"), "eth0"}, {netip.MustParseAddr("10.1.0.1"), "ib0"}}
	lookup := names(map[string]string{"h0": "10.0.0.1"})
	for _, chosen := range []string{"ib0", "10.1.0.0/16", "^eth0"} {
		c, err := parseInterface(chosen)
		if err != nil {
			t.Fatal(err)
		}
		_, err = openStore(context.Background(), []place{{"h0", freshPort(t)}}, own, c, lookup)
		want := "store h0 (10.0.0.1): interface=" + chosen + " (MALT_INTERFACE) excludes it\non the host of rank 0 it allows ib0 10.1.0.1\n"
		if !errors.Is(err, rdma.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", chosen, err)
		}
		s, err := openStore(context.Background(), []place{{"127.0.0.1", freshPort(t)}}, own, c, lookup)
		if err != nil {
			t.Fatalf("%s: no network reaches a loopback address: %v", chosen, err)
		}
		s.close()
	}
}

// Everywhere is where MALT_INTERFACE allows, or else where ranks of other hosts may come, and never the wildcard.
func TestEverywhere(t *testing.T) {
	own := []address{
		{netip.MustParseAddr("127.0.0.1"), "lo"}, {netip.MustParseAddr("10.0.0.1"), "eth0"},
		{netip.MustParseAddr("10.1.0.1"), "ib0"}, {netip.MustParseAddr("172.17.0.1"), "docker0"},
	}
	for chosen, want := range map[string]string{"": "[10.0.0.1:7 10.1.0.1:7]", "ib*": "[10.1.0.1:7]", "^eth0,ib0": "[172.17.0.1:7]", "wlan0": "[]"} {
		c, err := parseInterface(chosen)
		if err != nil {
			t.Fatal(err)
		}
		if at, err := everywhere(7, own, nil, c); fmt.Sprint(at) != want || (err != nil) != (want == "[]") {
			t.Errorf("%q: %v, %v; expected %s", chosen, at, err, want)
		}
	}
}

func freshPort(t *testing.T) uint16 { return netip.MustParseAddrPort(freePort(t)).Port() }

// A port that is in use is named, with who has it.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, _, err = Meet(context.Background(), Config{Size: 2, Store: l.Addr().String(), Token: "t"})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("%v", err)
	}
	name, _ := os.ReadFile("/proc/self/comm")
	for _, word := range []string{l.Addr().String(), fmt.Sprintf("process %d (%s)", os.Getpid(), strings.TrimSpace(string(name))), "another port"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v; expected %q", err, word)
		}
	}
}

func TestInheritRefuses(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	u, err := net.Listen("unix", "")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	f, err := u.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	for what, fd := range map[string]int{"a pipe": int(r.Fd()), "nothing": 1 << 20, "no descriptor": -1, "a Unix socket": fd} {
		_, _, err := Meet(context.Background(), Config{Size: 2, Store: "127.0.0.1:1", Token: "t", StoreFD: []int{fd}})
		if !errors.Is(err, rdma.ErrConfig) || !strings.Contains(err.Error(), fmt.Sprintf("store_fd=%d", fd)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := r.Stat(); err != nil {
		t.Errorf("what is no store is closed: %v", err)
	}
}

// What is in the way of a rank is said, with what to do.
func TestExplanations(t *testing.T) {
	refused := func(at string) error {
		a := netip.MustParseAddrPort(at)
		return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(a), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	silent := &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:7")), Err: os.ErrDeadlineExceeded}
	for _, c := range []struct {
		host string
		err  error
		says []string
	}{
		{"node-1", refused("192.0.2.1:7"), []string{"nothing listens at port 7 of node-1 (192.0.2.1)", "\nStart rank 0", "firewall"}},
		{"node-1", refused("127.0.1.1:7"), []string{"node-1 (127.0.1.1)", "this host itself", "/etc/hosts", "MALT_STORE"}},
		{"127.0.0.1", refused("127.0.0.1:7"), []string{"nothing listens at 127.0.0.1:7 yet", "another host"}},
		{"node-1", silent, []string{"node-1 (192.0.2.1)", "port 7", "firewall"}},
		{"node-1", &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "node-1"}}, []string{"node-1 cannot be resolved", "no such host", "give rank 0's address", "--store"}},
	} {
		what, do := explain(place{c.host, 7}, c.err)
		text := what + "\n" + do
		for _, word := range c.says {
			if !strings.Contains(text, word) {
				t.Errorf("%v: %q; expected %q", c.err, text, word)
			}
		}
	}
}

// Who waits in vain says for whom, and what it has seen.
func TestOutOfTime(t *testing.T) {
	store := freePort(t)
	for _, c := range []struct {
		Config
		says []string
	}{
		{Config{Rank: 1, Size: 2}, []string{"waited for rank 0 of 2", "nothing listens at " + store}},
		{Config{Rank: 0, Size: 3}, []string{"waited for ranks 1, 2 of 3", store}},
	} {
		fleet.Growing(t, func(ctx context.Context) error {
			c.Store, c.Token = store, "t"
			_, _, err := Meet(ctx, c.Config)
			missing := func(s string) bool { return !strings.Contains(err.Error(), s) }
			if !errors.Is(err, context.DeadlineExceeded) || slices.ContainsFunc(c.says, missing) {
				return fmt.Errorf("rank %d: %w; expected %q", c.Rank, err, c.says)
			}
			return nil
		})
	}
}
