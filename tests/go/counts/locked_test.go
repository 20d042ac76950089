//go:build amd64 && !race

package counts

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"malt/internal/fleet"
)

// TestLockedOperations: a sync of 1 KB makes at most 12 + 3·N locked operations, each of which
// takes some five nanoseconds and more where other ranks have the line. Those of Go's runtime
// are left out: a call that takes as long as it does step by step loses its processor.
func TestLockedOperations(t *testing.T) {
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && scope[0] > '2' {
		t.Skip("ptrace is forbidden here (kernel.yama.ptrace_scope)")
	}
	t.Setenv("GODEBUG", "asyncpreemptoff=1")
	for _, n := range []int{2, 4, 8} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			f := fleet.Start(t, "averages", n)
			threads := make([]int, n)
			for r, p := range f {
				if _, err := fmt.Sscan(p.Expect("thread"), &threads[r]); err != nil {
					t.Fatal(err)
				}
			}
			most := 12 + 3*n
			least := trace(t, f, threads, most)
			for _, p := range f {
				p.End()
			}
			if len(least) > most {
				t.Errorf("%d locked operations, and at most %d are asked for:\n%s", len(least), most, strings.Join(least, "\n"))
			}
		})
	}
}

// trace has the first thread make its calls step by step. The others sleep in theirs, and are
// stopped, so that this one decides and wakes them. It returns the functions in which the call
// with the fewest has made a locked operation, or the first with no more than enough.
func trace(t *testing.T, f []*fleet.Process, threads []int, enough int) (least []string) {
	tid := threads[0]
	runtime.LockOSThread() // the kernel knows the tracer by its thread
	defer runtime.UnlockOSThread()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	stopped := func() {
		t.Helper()
		var status unix.WaitStatus
		_, err := unix.Wait4(tid, &status, unix.WALL, nil)
		must(err)
		if !status.Stopped() {
			t.Fatalf("the rank has ended: %#x", status)
		}
	}
	if err := unix.PtraceAttach(tid); err == unix.EPERM {
		t.Skip("ptrace is forbidden here")
	} else if err != nil {
		t.Fatal(err)
	}
	stopped()
	must(unix.PtraceSetOptions(tid, unix.PTRACE_O_EXITKILL))
	for _, p := range f {
		p.Tell("go")
	}
	var regs unix.PtraceRegs
	next := func(run func(tid int) error) {
		t.Helper()
		must(run(tid))
		stopped()
		must(unix.PtraceGetRegs(tid, &regs))
	}
	toCall := func(tid int) error { return unix.PtraceSyscall(tid, 0) }
	passMark := func() {
		for range 2 { // it is entered, and left
			for next(toCall); regs.Orig_rax != unix.SYS_GETPPID; {
				next(toCall)
			}
		}
	}
	type instruction struct {
		locked string // the function, if it is
		enters bool   // the kernel
	}
	known := map[uint64]instruction{}
	const tooMany = 100_000 // for a call: it waits for a rank that was stopped while it slept elsewhere than in its own
	for c := 0; c < calls && (least == nil || len(least) > enough); c++ {
		passMark()
		for i, p := range f[1:] {
			await(threads[1+i], 'S')
			p.Signal(unix.SIGSTOP)
			await(threads[1+i], 'T')
		}
		var found []string
		steps := 0
		for ; steps < tooMany; steps++ {
			in, ok := known[regs.Rip]
			if !ok {
				var code [16]byte
				_, err := unix.PtracePeekText(tid, uintptr(regs.Rip), code[:])
				must(err)
				if isLocked(code[:]) {
					in.locked = runtime.FuncForPC(uintptr(regs.Rip)).Name() // of the same binary
				}
				in.enters = code[0] == 0x0f && code[1] == 0x05
				known[regs.Rip] = in
			}
			if in.enters && regs.Rax == unix.SYS_GETPPID {
				break
			}
			if in.locked != "" && !strings.HasPrefix(in.locked, "runtime.") && !strings.HasPrefix(in.locked, "internal/runtime/") {
				found = append(found, in.locked)
			}
			next(unix.PtraceSingleStep)
		}
		for _, p := range f[1:] {
			p.Signal(unix.SIGCONT)
		}
		passMark()
		if steps < tooMany && (least == nil || len(found) < len(least)) {
			least = found
		}
	}
	if least == nil {
		t.Error("another rank was stopped too early, in each call")
	}
	must(unix.PtraceDetach(tid))
	return least
}

// await returns when a thread is in that state of /proc.
func await(tid int, state byte) {
	for {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
		if rest := stat[bytes.LastIndexByte(stat, ')')+1:]; len(rest) < 2 || rest[1] == state {
			return // or it has ended
		}
		runtime.Gosched()
	}
}

// isLocked tells whether an instruction has the prefix lock, or is an exchange with memory.
func isLocked(code []byte) bool {
	for slices.Contains([]byte{0x66, 0xf2, 0xf3, 0x64, 0x65}, code[0]) {
		code = code[1:]
	}
	if code[0] == 0xf0 {
		return true
	}
	if code[0]&0xf0 == 0x40 { // REX
		code = code[1:]
	}
	return code[0]&0xfe == 0x86 && code[1]>>6 != 3
}
