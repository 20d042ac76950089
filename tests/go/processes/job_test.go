package processes

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"malt/internal/fleet"
	"malt/libmalt"
	"malt/rdma/auto"
)

// job is the tests' side: a program that runs as several ranks.
type job struct {
	id    string
	dir   string // the ranks' temporary directory
	page  page
	file  *os.File // of the page
	ranks []*process
	voter *process // on the last host, if that has no rank
	site
}

// site is where the ranks of a job run.
type site struct {
	hosts     []*host // none: on this machine, over shared memory
	places    []int   // by rank: its host
	transport string
	encrypt   bool
	witness   bool // the last host has no rank, and a vote
}

// hostOf is nil on this machine.
func (s *site) hostOf(rank int) *host {
	if len(s.hosts) == 0 {
		return nil
	}
	if rank == len(s.places) {
		return s.hosts[len(s.hosts)-1]
	}
	return s.hosts[s.places[rank]]
}

// process is one rank.
type process struct {
	rank    int
	cmd     *exec.Cmd
	orders  io.WriteCloser
	reports *json.Decoder
	pipe    *os.File      // of the reports
	output  bytes.Buffer  // what it wrote; whole once ended is closed
	ended   chan struct{} // closed when it has been waited for
	end     time.Duration // when that was, of now
	page    page

	mu    sync.Mutex // of signals
	alive bool
}

// config is how a rank joins.
func (j *job) config(rank int) libmalt.Config {
	c := libmalt.Config{Rank: rank, Size: len(j.ranks), Store: "local:" + j.id, Token: "token " + j.id, Transport: "shm"}
	if len(j.hosts) > 0 {
		c.Store, c.Transport, c.Encrypt = j.hostOf(0).Address+":7007", j.transport, auto.EncryptNever
		if j.encrypt {
			c.Encrypt = auto.EncryptAlways
		}
		c.Unreachable = unreachable
	}
	if j.witness {
		c.Witnesses = 1
	}
	return c
}

// startJob starts n ranks of a program, in the given order of ranks.
func startJob(program string, n int, args any, order []int, at site) (*job, error) {
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	j := &job{id: hex.EncodeToString(id), ranks: make([]*process, n), site: at}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	if j.dir, err = os.MkdirTemp("", "malt-test-"); err != nil {
		return nil, err
	}
	if j.page, j.file, err = newPage(n); err != nil {
		return nil, err
	}
	for _, r := range order {
		if j.ranks[r], err = j.start(setting{Program: program, Args: text, Config: j.config(r)}); err != nil {
			return nil, errors.Join(err, j.end())
		}
	}
	if j.witness {
		if j.voter, err = j.start(setting{Program: "witness", Config: j.config(n)}); err != nil {
			return nil, errors.Join(err, j.end())
		}
	}
	return j, nil
}

func (j *job) start(s setting) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	here, there, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer there.Close()
	p := &process{rank: s.Config.Rank, ended: make(chan struct{}), page: j.page, alive: true, pipe: here, reports: json.NewDecoder(here)}
	p.cmd = exec.Command("/proc/self/exe")
	if h := j.hostOf(p.rank); h != nil {
		exe, err := os.Executable()
		if err != nil {
			return nil, err
		}
		p.cmd = h.command(exe) // which becomes it
	}
	p.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + j.dir, "TMPDIR=" + j.dir, "GOTRACEBACK=all",
		envProgram + "=" + s.Program, envSetting + "=" + string(text),
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.ExtraFiles = []*os.File{fdReports - 3: there, fdPage - 3: j.file}
	// Ranks end with the test, also those that are stopped.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.orders, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		here.Close()
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		p.end = now()
		p.mu.Lock()
		p.alive = false
		p.mu.Unlock()
		close(p.ended)
	}()
	return p, nil
}

// hear waits for the rank's next report; io.EOF when it has ended instead.
func (p *process) hear(into any) error {
	err := p.reports.Decode(into)
	if err == io.ErrUnexpectedEOF { // killed while it wrote
		err = io.EOF
	}
	return err
}

// tell gives the rank an order. One that has ended does not need it.
func (p *process) tell(order string) { _, _ = io.WriteString(p.orders, order+"\n") }

// signal sends s, unless the process has been waited for: its number may be
// another's.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alive {
		_ = p.cmd.Process.Signal(s)
	}
}

// stop returns when every thread of the rank stands still; false when it has
// ended instead.
func (p *process) stop() bool {
	p.signal(syscall.SIGSTOP)
	for {
		var info unix.Siginfo
		p.mu.Lock()
		alive := p.alive
		if alive {
			err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
			alive = err == nil || err == unix.EINTR
		}
		p.mu.Unlock()
		const stopped = 5 // CLD_STOPPED
		switch {
		case !alive || info.Signo != 0 && info.Code != stopped:
			return false
		case info.Signo != 0:
			return true
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// resume continues a stopped rank.
func (p *process) resume() {
	p.page.at(p.rank, resumed).Store(int64(now()))
	p.signal(syscall.SIGCONT)
}

// kill ends the rank at once.
func (p *process) kill() {
	p.page.at(p.rank, died).Store(int64(now()))
	p.signal(syscall.SIGKILL)
}

// hasEnded tells without waiting.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// stacks makes ranks that hang say where, and ends them.
func (j *job) stacks() string {
	var b strings.Builder
	for _, p := range j.ranks {
		if p == nil || p.hasEnded() {
			continue
		}
		fmt.Fprintf(&b, "rank %d (process %d) is %s, in phase %d, after %d scatters, %d gathers and %d collective calls\n", p.rank,
			p.cmd.Process.Pid, activities[p.page.at(p.rank, activity).Load()], p.page.at(p.rank, phase).Load(),
			p.page.at(p.rank, scatters).Load(), p.page.at(p.rank, gathers).Load(), p.page.at(p.rank, collectives).Load())
	}
	for _, p := range j.ranks {
		if p == nil || p.hasEnded() {
			continue
		}
		p.signal(syscall.SIGQUIT)
		p.signal(syscall.SIGCONT)
		select {
		case <-p.ended:
		case <-time.After(fleet.Patience):
			p.signal(syscall.SIGKILL)
			<-p.ended
		}
		fmt.Fprintf(&b, "\n--- rank %d\n%s", p.rank, &p.output)
	}
	return b.String()
}

// end waits for all ranks, killing those that live, and looks for what is left.
// Callers that expect ranks to end by themselves wait for that first.
func (j *job) end() error {
	j.killAll()
	return errors.Join(j.leftovers(), os.RemoveAll(j.dir), j.page.close(), j.file.Close())
}

// killAll ends all ranks and lets go of what belonged to them.
func (j *job) killAll() {
	for _, p := range append(slices.Clone(j.ranks), j.voter) {
		if p != nil {
			p.signal(syscall.SIGKILL)
			<-p.ended
			p.orders.Close()
			p.pipe.Close()
		}
	}
}
