//go:build cgo

package ofi

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"malt/rdma/fabric"
	"malt/rdma/fabrictest"
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
	if caps := c.Caps(); caps.Fence || caps.Passive || caps.MaxRooms < 8 || caps.MaxWrite < 1<<20 {
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

// The environment is as before.
func TestEnvironment(t *testing.T) {
	need(t, software).Close()
	for _, name := range []string{"FI_MR_CACHE_MAX_COUNT", "FI_UNIVERSE_SIZE"} {
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
