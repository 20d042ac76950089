//go:build cgo

package ofi

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"malt/rdma/fabric"
	"malt/rdma/fabrictest"
	"malt/rdma/internal/mem"
)

// software is a provider that needs no device.
const software = "tcp;ofi_rxm"

// missing ends a test for want of something, which MALT_NEED=libfabric makes a failure.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("MALT_NEED") == "libfabric" {
		t.Fatal(what)
	}
	t.Skipf("skipped: %s", what)
}

// need opens a Carrier, or skips where libfabric is not installed.
func need(t *testing.T, provider string) fabric.Carrier {
	t.Helper()
	c, err := Open(provider, os.Getenv("MALT_LIBFABRIC"), 8)
	if errors.Is(err, fabric.ErrNoLibrary) {
		missing(t, "apt install libfabric1: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSoftware(t *testing.T) {
	fabrictest.Run(t, func(t *testing.T) fabric.Carrier { return need(t, software) })
}

func TestAbout(t *testing.T) {
	c := need(t, software)
	defer c.Close()
	a := c.About()
	if a.Provider != software || a.Device == "" || !strings.Contains(a.Library, ".") {
		t.Errorf("%+v", a)
	}
	if caps := c.Caps(); caps.Hardware || caps.MaxRooms < 8 || caps.MaxWrite < 1<<20 {
		t.Errorf("%+v", caps)
	}
}

func TestNothingToOpen(t *testing.T) {
	for _, c := range []struct {
		provider, library, says string
		none                    bool // no library
	}{
		{software, "/none/libfabric.so.1", "/none/libfabric.so.1", true},
		{software, "libc.so.6", "fi_getinfo", true},
		{"nonesuch", "", "libfabric's provider nonesuch: fi_getinfo: no such provider", false},
		{"shm", "", "it does not check keys", false},
		{"cxi", "", "its writes do not tell the peer that they have arrived", false},
		{"udp;ofi_rxd", "", "no longer maintained", false},
	} {
		if c.library == "" {
			need(t, software).Close()
		}
		opened, err := Open(c.provider, c.library, 2)
		if err == nil {
			opened.Close()
			t.Errorf("%s of %s was opened", c.provider, c.library)
		} else if !strings.Contains(err.Error(), c.says) || errors.Is(err, fabric.ErrNoLibrary) != c.none {
			t.Errorf("%s of %s: %v", c.provider, c.library, err)
		}
	}
}

// compile makes a library of a file in testdata, linked with others.
func compile(t *testing.T, file string, with ...string) string {
	t.Helper()
	library := filepath.Join(t.TempDir(), "libfabric.so")
	args := append([]string{"-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library, filepath.Join("testdata", file)}, with...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return library
}

// Some cards lock the memory of an endpoint when it is opened. A process that may not lock it is told so; one that may is not.
func TestMemlockOfAnEndpoint(t *testing.T) {
	library := compile(t, "short.c")
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit) }()
	for _, c := range []struct {
		limit, need uint64
	}{{64 << 10, 2 * connection}, {2 * connection, 0}} {
		if c.limit > limit.Max {
			t.Skipf("this process may lock %d bytes at most", limit.Max)
		}
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: c.limit, Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
		_, err := Open("verbs", library, 2)
		var short *fabric.MemlockError
		switch {
		case err == nil:
			t.Fatal("it was opened")
		case errors.As(err, &short) != (c.need > 0):
			t.Errorf("with a limit of %d bytes: %v", c.limit, err)
		case c.need > 0 && *short != fabric.MemlockError{Limit: c.limit, Need: c.need}:
			t.Errorf("%+v", short)
		case c.need == 0 && err.Error() != "libfabric's provider verbs: fi_getinfo: no memory":
			t.Error(err)
		}
	}
}

// Where completions cannot be read any more, it is said once, and Wait waits, although there always is something to read.
func TestBrokenQueue(t *testing.T) {
	need(t, software).Close()
	library := compile(t, "broken.c", "-Wl,--no-as-needed", "-l:libfabric.so.1")
	t.Setenv("MALT_TEST_READS", "3")
	c, err := Open(software, library, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var ev [4]fabric.Event
	var told []fabric.Event
	for range 10 {
		told = append(told, ev[:c.Poll(ev[:])]...)
	}
	if len(told) != 1 || told[0].Op != nil || told[0].Number != 0 || told[0].Err == nil {
		t.Fatalf("%+v", told)
	}
	if want := software + ": completions: Input/output error"; told[0].Err.Error() != want {
		t.Errorf("%v, expected %s", told[0].Err, want)
	}
	const d = 20 * time.Millisecond
	begin := time.Now()
	c.Wait(d)
	if waited := time.Since(begin); waited < d {
		t.Errorf("it waited for %v", waited)
	}
}

// The environment is as before.
func TestEnvironment(t *testing.T) {
	need(t, software).Close()
	for _, name := range []string{"FI_MR_CACHE_MAX_COUNT", "FI_UNIVERSE_SIZE", "FI_OFI_RXM_BUFFER_SIZE"} {
		if v, ok := os.LookupEnv(name); ok {
			t.Errorf("%s=%s", name, v)
		}
	}
}

// handlers are those of all signals, as the kernel has them.
func handlers(t *testing.T) (list [65][4]uint64) {
	for s := 1; s <= 64; s++ {
		if _, _, e := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&list[s])), 8, 0, 0); e != 0 {
			t.Fatal(s, e)
		}
	}
	return list
}

// Debian's libpsm2 takes INT, SEGV and TERM when it is loaded, which libfabric does: hence in a process
// that has not loaded it yet.
func TestHandlersOfSignals(t *testing.T) {
	if os.Getenv("MALT_TEST_FRESH") == "" {
		program := exec.Command(os.Args[0], "-test.run=^TestHandlersOfSignals$", "-test.v")
		program.Env = append(os.Environ(), "MALT_TEST_FRESH=1")
		out, err := program.CombinedOutput()
		switch {
		case err != nil:
			t.Fatalf("%v\n%s", err, out)
		case strings.Contains(string(out), "--- SKIP"):
			missing(t, string(out))
		}
		return
	}
	before := handlers(t)
	need(t, software).Close()
	for s, after := range handlers(t) {
		if after != before[s] {
			t.Errorf("signal %d: %x, before %x", s, after, before[s])
		}
	}
}

// abi.h is what the headers of this system's libfabric say.
func TestABI(t *testing.T) {
	out, err := exec.Command("gcc", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "testdata/abi.c").CombinedOutput()
	if strings.Contains(string(out), "rdma/fabric.h: No such file") {
		missing(t, "apt install libfabric-dev")
	} else if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// verbs is a device's, such as Soft-RoCE in the emulated machine of tests/rdma.
func verbs(t *testing.T) string {
	if devices, _ := os.ReadDir("/sys/class/infiniband"); len(devices) == 0 {
		t.Skip("skipped: no RDMA device: make test-rdma emulates one")
	}
	return "verbs;ofi_rxm"
}

func TestVerbs(t *testing.T) {
	provider := verbs(t)
	fabrictest.Run(t, func(t *testing.T) fabric.Carrier { return need(t, provider) })
}

// With a cache of registrations a region that was closed could still be written into. In a process that has
// not loaded libfabric yet, since it reads the variable once.
func TestVerbsWithACache(t *testing.T) {
	verbs(t)
	program := exec.Command(os.Args[0], "-test.run=^TestVerbs$/^Probe$")
	program.Env = append(os.Environ(), "FI_MR_CACHE_MAX_COUNT=1024")
	if out, err := program.CombinedOutput(); err == nil || !strings.Contains(string(out), "registrations are cached") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A process that may lock too little memory is told so, with the number. Root may lock all, unless it is kept from it.
func TestVerbsMemlock(t *testing.T) {
	verbs(t)
	out, err := exec.Command("prlimit", "--memlock=65536", "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock",
		os.Args[0], "-test.run=^TestVerbs$/^Probe$").CombinedOutput()
	if want := "KiB of locked memory, and RLIMIT_MEMLOCK is 64 KiB"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, expected %q\n%s", err, want, out)
	}
}

func TestVerbsOfAStoppedProcess(t *testing.T) { testStopped(t, verbs(t)) }
func TestSoftwareOfAStoppedProcess(t *testing.T) {
	need(t, software).Close()
	testStopped(t, software)
}

const room = 64 << 10

// TestPeer is the other process of testStopped. It says where its room is, and the sum of its bytes with
// each number that arrives.
func TestPeer(t *testing.T) {
	provider := os.Getenv("MALT_TEST_PEER")
	if provider == "" {
		t.Skip("testStopped runs this")
	}
	c := need(t, provider)
	m, err := mem.NewPinned(room)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Register(m, fabric.Target)
	if err != nil {
		t.Fatal(err)
	}
	address, key := r.Remote()
	fmt.Printf("at %x %d %d %d\n", c.Address(), address, key, uintptr(unsafe.Pointer(&m.Bytes()[0])))
	var ev [1]fabric.Event
	for os.Getppid() != 1 {
		for _, e := range ev[:c.Poll(ev[:])] {
			fmt.Printf("number %d %08x\n", e.Number, crc32.ChecksumIEEE(m.Bytes()))
		}
		c.Wait(100 * time.Millisecond)
	}
}

// testStopped writes into the memory of a process that is stopped. With a device all bytes are there, and the
// process was not run for it; without one they come when it goes on.
func testStopped(t *testing.T, provider string) {
	peer := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeer$", "-test.v")
	peer.Env = append(os.Environ(), "MALT_TEST_PEER="+provider)
	out, err := peer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := peer.Start(); err != nil {
		t.Fatal(err)
	}
	pid := peer.Process.Pid
	defer func() {
		_ = peer.Process.Kill()
		_ = peer.Wait()
	}()
	lines := bufio.NewScanner(out)
	said := func(form string, to ...any) {
		t.Helper()
		for lines.Scan() {
			if n, _ := fmt.Sscanf(lines.Text(), form, to...); n == len(to) {
				return
			}
		}
		t.Fatalf("the peer has not said %q", form)
	}
	var peerAddress []byte
	var address, key, at uint64
	said("at %x %d %d %d", &peerAddress, &address, &key, &at)

	c := need(t, provider)
	defer c.Close()
	m, err := mem.NewPinned(room)
	if err != nil {
		t.Fatal(err)
	}
	source, err := c.Register(m, fabric.Source)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Connect(1, peerAddress); err != nil {
		t.Fatal(err)
	}
	write := func(number uint32) {
		t.Helper()
		for i := range m.Bytes() {
			m.Bytes()[i] = byte(i*3) + byte(number)
		}
		op := &fabric.Op{Peer: 1, From: source, Bytes: room, Address: address, Key: key, Number: number}
		for err := c.Write(op); err != nil; err = c.Write(op) {
			if !errors.Is(err, fabric.ErrBusy) {
				t.Fatal(err)
			}
			c.Poll(nil)
			c.Wait(time.Millisecond)
		}
		var ev [1]fabric.Event
		for c.Poll(ev[:]) == 0 {
			c.Wait(time.Millisecond)
		}
		if ev[0].Op != op || ev[0].Err != nil {
			t.Fatalf("%+v", ev[0])
		}
	}
	sum := func() string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(m.Bytes())) }
	there := func() string {
		memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err != nil {
			t.Fatal(err)
		}
		defer memory.Close()
		b := make([]byte, room)
		if _, err := memory.ReadAt(b, int64(at)); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%08x", crc32.ChecksumIEEE(b))
	}
	ticks := func() string { // of the processor, in both modes
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(stat))[13:15], " ")
	}

	var told string
	write(1)
	said("number 1 %s", &told)
	before := sum()
	if told != before || there() != before {
		t.Fatalf("the peer has %s, its memory %s, expected %s", told, there(), before)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, %v", status, err)
	}
	ran := ticks()
	write(2)
	want := before
	if c.Caps().Hardware {
		want = sum()
	}
	if got := there(); got != want {
		t.Errorf("the stopped process has %s, expected %s; before %s, sent %s", got, want, before, sum())
	}
	if now := ticks(); now != ran {
		t.Errorf("the stopped process has run: %s ticks, before %s", now, ran)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	said("number 2 %s", &told)
	if told != sum() {
		t.Errorf("the peer has %s, expected %s", told, sum())
	}
}
