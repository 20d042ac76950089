package meeting

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma/internal/mem"
)

// handed is a descriptor of a socket that listens at address.
func handed(t testing.TB, address string) (fd int, at string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err = syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	return fd, l.Addr().String()
}

// roles are what processes of these tests do.
var roles = map[string]fleet.Role{"meet": meetRole}

// meetRole meets, and says what it hears of.
func meetRole(r *fleet.Rank) error {
	store := r.Hear()
	c := Config{Rank: r.Rank, Size: r.Size, Store: store, Token: "secret"}
	c.Report = func(p Progress) { r.Say("absent %v", p.Absent) }
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if r.Hear() == "stop" {
			cancel()
		}
	}()
	t, _, err := Meet(ctx, c)
	if err != nil {
		r.Say("failed %v", err)
		return nil
	}
	r.Say("met %v", t.Job)
	return nil
}

// freePort is one at which nobody listens, and which the kernel gives to nobody
// who asks for any.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 16384+rand.IntN(16384)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// sockets is how many of them this process has, and how many forked children
// would close.
func sockets() (n int) {
	for i := range mem.Descriptors() {
		if mem.Descriptors()[i].Load() != 0 {
			n++
		}
	}
	all, _ := filepath.Glob("/proc/self/fd/*")
	for _, f := range all {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// nothingLeft returns what fails the test if a meeting has left sockets or
// goroutines. In between nobody else closes what is not referenced any more.
func nothingLeft(t testing.TB) (check func()) {
	t.Helper()
	percent := debug.SetGCPercent(-1)
	before := sockets()
	return func() {
		t.Helper()
		settled(t, before)
		debug.SetGCPercent(percent)
	}
}

// settled waits until no more sockets and goroutines of meetings are left than
// there were.
func settled(t testing.TB, before int) {
	t.Helper()
	stack := make([]byte, 1<<20)
	for end := time.Now().Add(fleet.Patience); time.Now().Before(end); runtime.Gosched() {
		running := 0
		for g := range bytes.SplitSeq(stack[:runtime.Stack(stack, true)], []byte("\n\n")) {
			if bytes.Contains(g, []byte("malt/rdma/rendezvous/meeting.")) && !bytes.Contains(g, []byte("testing.tRunner")) {
				running++
			}
		}
		if running == 0 && sockets() <= before {
			return
		}
	}
	t.Errorf("%d sockets, %d before; goroutines:\n%s", sockets(), before, stack[:runtime.Stack(stack, true)])
}
