package rendezvous

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"malt/internal/fleet"
	"malt/rdma/internal/mem"
)

// mourner joins, and goes on when others die where it is told so. It says when another is
// dead, and whether the kernel says so, too.
func mourner(r *fleet.Rank) error {
	h, err := Join(context.Background(), config(r))
	if err != nil {
		return err
	}
	defer h.Close()
	r.Say("joined")
	for {
		switch words := strings.Fields(r.Hear()); words[0] {
		case "survive":
			h.Survive(1)
		case "hold": // so many MB
			n, _ := strconv.Atoi(words[1])
			b, err := unix.Mmap(-1, 0, n<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			r.Say("holds %v", err)
		case "mourn":
			pid := int(h.page.pid(1).Load())
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			r.Say("waits")
			err = h.Wait(context.Background(), 0, Policy{Sleep: time.Second}, func() bool { return h.State(1) != nil })
			now := time.Now().UnixNano()
			ended, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			r.Say("dead %v %d %d", err, ended, now)
			return unix.Close(fd)
		}
	}
}

// mourned kills rank 1, which holds so many MB, and tells whether the kernel said that it
// has ended when rank 0 knew, and after what time that was.
func mourned(t *testing.T, survive bool, mb int) (ended bool, after time.Duration) {
	t.Helper()
	f := fleet.Start(t, "mourner", 2)
	for _, p := range f {
		p.Expect("joined")
		if survive {
			p.Tell("survive")
		}
	}
	f[1].Tell(fmt.Sprint("hold ", mb))
	f[1].Expect("holds <nil>")
	f[0].Tell("mourn")
	f[0].Expect("waits")
	for !asleep(f[0].Pid()) { // it looks from then on
	}
	killed := time.Now().UnixNano()
	f[1].Signal(syscall.SIGKILL)
	words := strings.Fields(f[0].Expect("dead <nil> "))
	at, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return words[0] == "1", time.Duration(at - killed)
}

// asleep tells whether a thread of the process waits in a futex for a doorbell: they are in
// shared memory, and so not private to the process.
func asleep(pid int) bool {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/syscall", pid, task.Name()))
		f := strings.Fields(string(b))
		if len(f) > 2 && f[0] == strconv.Itoa(unix.SYS_FUTEX) && f[2] == "0x0" {
			return true
		}
	}
	return false
}

// TestDeathIsKnownBeforeItsMemoryIsFree: where the job goes on, a rank that waits knows of a
// death as soon as it is certain.
func TestDeathIsKnownBeforeItsMemoryIsFree(t *testing.T) {
	mb, tries := 512, 5
	if big, err := strconv.Atoi(os.Getenv("MALT_TEST_MB")); err == nil {
		mb = big
	}
	if free, _ := mem.Free(); free < uint64(2*mb)<<20 {
		t.Skipf("%d MB of memory are free, and this needs %d", free>>20, 2*mb)
	}
	if ended, after := mourned(t, false, mb); !ended {
		t.Errorf("after %v: a job that stops knows before the kernel says so", after)
	} else {
		t.Logf("%d MB, a job that stops: %v", mb, after)
	}
	for range tries { // another process may have had the core
		ended, after := mourned(t, true, mb)
		t.Logf("%d MB, a job that goes on: %v", mb, after)
		if !ended {
			return
		}
	}
	t.Errorf("in %d tries the kernel had said so", tries)
}

// TestStoppedRankIsNotExiting: a rank that waits for a stopped one, and looks, finds that it lives.
func TestStoppedRankIsNotExiting(t *testing.T) {
	hosts := meet(t, 2)
	for _, h := range hosts {
		h.Survive(1)
	}
	h := hosts[0]
	child := fleet.Start(t, "mourner", 2)[1]
	child.Signal(syscall.SIGSTOP)
	start, err := mem.StartTime(child.Pid())
	if err != nil {
		t.Fatal(err)
	}
	p, err := mem.OpenProcess(child.Pid(), start)
	if err != nil {
		t.Fatal(err)
	}
	h.deaths.mu.Lock()
	h.deaths.procs[1] = p
	h.deaths.mu.Unlock()
	for range 100 {
		h.exits.look()
	}
	if err := h.State(1); err != nil {
		t.Fatal(err)
	}
	child.Signal(syscall.SIGKILL)
	for h.State(1) == nil {
		h.exits.look()
	}
	if !h.View().Has(0) || h.View().Has(1) {
		t.Errorf("the view is %v", h.View())
	}
}
