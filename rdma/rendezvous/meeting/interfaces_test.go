package meeting

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// a host with the given addresses: "eth0 10.0.0.1", …
func hostWith(list ...string) (all []address) {
	for _, s := range list {
		name, ip, _ := strings.Cut(s, " ")
		all = append(all, address{netip.MustParseAddr(ip), name})
	}
	return all
}

func TestCandidates(t *testing.T) {
	lo := []string{"lo 127.0.0.1", "lo ::1"}
	server := append(lo, "eth0 10.0.0.1", "eth0 fe80::1", "ib0 192.168.7.1", "ib0 fd00::1", "docker0 172.17.0.1", "br-0123456789ab 172.18.0.1", "virbr0 192.168.122.1", "veth12ab fe80::2")
	for _, c := range []struct {
		name   string
		own    []string
		met    string
		inside bool
		chosen string
		want   string
	}{
		{"where it reached the store first", server, "192.168.7.1", false, "", "192.168.7.1 10.0.0.1 fd00::1"},
		{"not known", server, "", false, "", "10.0.0.1 192.168.7.1 fd00::1"},
		{"by a name that is loopback", server, "127.0.0.1", false, "", "10.0.0.1 192.168.7.1 fd00::1"},
		{"by a bridge, if that leads there", server, "172.17.0.1", false, "", "172.17.0.1 10.0.0.1 192.168.7.1 fd00::1"},
		{"by two, in that order", server, "fd00::1 10.0.0.1", false, "", "fd00::1 10.0.0.1 192.168.7.1"},
		{"a store inside", server, "127.0.0.1", true, "", "127.0.0.1"},
		{"a store inside, IPv6", server, "::1", true, "", "::1"},
		{"a store inside, not known", server, "", true, "", "10.0.0.1 192.168.7.1 fd00::1"},
		{"a link only", append(lo, "eth0 fe80::1", "usb0 169.254.3.4", "docker0 172.17.0.1"), "", false, "", "fe80::1 169.254.3.4"},
		{"a bridge only", append(lo, "docker0 172.17.0.1"), "", false, "", "172.17.0.1"},
		{"loopback only", lo, "", false, "", "127.0.0.1 ::1"},

		{"a name", server, "10.0.0.1", false, "ib0", "192.168.7.1 fd00::1"},
		{"where it reached the store first, of those", server, "fd00::1", false, "ib0,eth0", "fd00::1 10.0.0.1 fe80::1 192.168.7.1"},
		{"a pattern", server, "", false, "eth*", "10.0.0.1 fe80::1"},
		{"a network", server, "", false, "10.0.0.0/8", "10.0.0.1"},
		{"a network of another host's address", server, "", false, "10.200.0.9/8", "10.0.0.1"},
		{"an address", server, "", false, "fd00::1", "fd00::1"},
		{"a bridge, by choice", server, "10.0.0.1", false, "docker0", "172.17.0.1"},
		{"all but", server, "10.0.0.1", false, "^eth*", "192.168.7.1 fd00::1"},
		{"all but a network", server, "", false, "^10.0.0.0/8, fd00::/8", "192.168.7.1"},
		{"outside, by choice", server, "127.0.0.1", true, "eth0", "10.0.0.1 fe80::1"},
		{"nothing", server, "", false, "wlan*", "interface=wlan* (MALT_INTERFACE) leaves no address of this host\nit has lo 127.0.0.1, lo ::1, eth0 10.0.0.1"},
		{"no network at all", nil, "", false, "", "no network interface is up"},
	} {
		chosen, err := parseInterface(c.chosen)
		if err != nil {
			t.Fatal(err)
		}
		var met []netip.Addr
		for _, ip := range strings.Fields(c.met) {
			met = append(met, netip.MustParseAddr(ip))
		}
		found, err := candidates(hostWith(c.own...), met, c.inside, chosen)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v; expected %q", c.name, err, c.want)
			}
			continue
		}
		if got := strings.Trim(fmt.Sprint(ips(found)), "[]"); got != c.want {
			t.Errorf("%s: %s; expected %s", c.name, got, c.want)
		}
	}
}

func TestManyAddresses(t *testing.T) {
	var own []address
	for i := range 100 {
		own = append(own, address{netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), "eth0"})
	}
	found, err := candidates(own, []netip.Addr{own[77].ip}, false, choice{})
	if err != nil || len(found) != maxListeners || found[0] != own[77] {
		t.Errorf("%v, %v", found, err)
	}
}

func TestInterfaceRefuses(t *testing.T) {
	for _, text := range []string{"eth0,", ",", "^", "10.0.0.0/33", "eth[", "eth0,^lo", "eth0/24"} {
		if c, err := parseInterface(text); err == nil || !strings.Contains(err.Error(), "MALT_INTERFACE") {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}

// Own addresses are listened at one by one, each at a port of its own.
func TestListen(t *testing.T) {
	ls, at, err := listen(hostWith("lo 127.0.0.1", "eth0 192.0.2.1", "lo 127.0.0.2")) // the second is not here
	if err != nil || len(ls) != 2 || len(at) != 2 {
		t.Fatalf("%v, %v, %v", ls, at, err)
	}
	for i, l := range ls {
		if l.Addr().String() != at[i].String() {
			t.Errorf("%v is said to be %v", l.Addr(), at[i])
		}
		l.Close()
	}
	if _, _, err := listen(hostWith("eth0 192.0.2.1")); err == nil || !strings.Contains(err.Error(), "eth0 192.0.2.1") {
		t.Errorf("%v", err)
	}
}

// What this host has, and what leads to containers, is not tried; where rank 0
// was met is tried first; what holds on a link only is tried on each link.
func TestView(t *testing.T) {
	at := func(list ...string) (all []netip.AddrPort) {
		for _, s := range list {
			all = append(all, netip.MustParseAddrPort(s))
		}
		return all
	}
	m := layout("j", []*card{
		{Host: "x", Network: "x", Name: "a", Addresses: at("10.0.0.1:1", "10.1.0.1:2", "172.17.0.1:3")},
		{Host: "y", Network: "y", Name: "b", Addresses: at("10.0.0.2:1", "172.17.0.1:4")},
		{Host: "x, another user", Network: "x", Name: "a", Addresses: at("10.0.0.1:5")},
		{Host: "z", Network: "z", Name: "c", Addresses: at("172.17.0.1:6")},
		{Host: "y", Network: "y", Name: "b", Addresses: at("[fe80::7]:8")},
	})
	own := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("172.17.0.1")}
	v := m.view(2, own, netip.MustParseAddr("10.1.0.1"), []string{"eth0", "eth1"})
	want := "[[10.1.0.1:2 10.0.0.1:1 172.17.0.1:3] [10.0.0.2:1] [10.0.0.1:5] [172.17.0.1:6] [[fe80::7%eth0]:8 [fe80::7%eth1]:8]]"
	if got := fmt.Sprint(v.Addresses); got != want {
		t.Errorf("%s; expected %s", got, want)
	}
	if got := fmt.Sprint(v.Hosts, v.Names, v.Near()); got != "[0 1 2 3 1] [a b a c b] [2]" {
		t.Error(got)
	}
	if got := fmt.Sprint(m.view(4, nil, netip.Addr{}, nil).Near()); got != "[1 4]" {
		t.Error(got)
	}
}

// FuzzInterface: no text is too strange.
func FuzzInterface(f *testing.F) {
	for _, s := range []string{"", "eth0", "^docker*,veth*", "10.0.0.0/8,fd00::1", "eth[0-9]", "^"} {
		f.Add(s)
	}
	own := hostWith("lo 127.0.0.1", "eth0 10.0.0.1", "ib0 fd00::1")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseInterface(s)
		if err != nil {
			return
		}
		found, err := candidates(own, nil, false, c)
		if (err == nil) != (len(found) > 0) {
			t.Errorf("%q: %v, %v", s, found, err)
		}
	})
}

// A user is known by the number that it has outside a container.
func TestOutside(t *testing.T) {
	const all = "         0          0 4294967295\n"
	for _, c := range []struct {
		uidMap     string
		user, want int
	}{
		{all, 0, 0}, {all, 1000, 1000},
		{"0 1000 1\n", 0, 1000}, {"1000 1000 1\n", 1000, 1000},
		{"0 1000 1\n1 100000 65536\n", 33, 100032}, {"0 100000 65536\n", 0, 100000},
		{"0 1000 1\n", 7, 7}, {"", 5, 5}, {"nonsense", 5, 5},
	} {
		if got := outside(c.uidMap, c.user); got != c.want {
			t.Errorf("%q: user %d is %d outside, expected %d", c.uidMap, c.user, got, c.want)
		}
	}
}
