package processes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// envHosts has the descriptor of the socket by which tests/net/beside.py lends
// simulated hosts; its text says what goes over it.
const envHosts = "MALT_TEST_HOSTS"

// host is one of them.
type host struct {
	Name, Address string
	Enter         []string // options of nsenter
	number        int
	wires         *wires
}

// wires is the way to ask for changes of the network.
type wires struct {
	mu      sync.Mutex
	conn    net.Conn
	answers *json.Decoder
}

var lent = sync.OnceValues(func() ([]*host, error) {
	fd, err := strconv.Atoi(os.Getenv(envHosts))
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "hosts")
	defer f.Close() // ranks do not inherit it
	w := &wires{}
	if w.conn, err = net.FileConn(f); err != nil {
		return nil, err
	}
	w.answers = json.NewDecoder(bufio.NewReader(w.conn))
	var all []*host
	if err := w.answers.Decode(&all); err != nil {
		return nil, err
	}
	for i, h := range all {
		h.number, h.wires = i, w
	}
	return all, nil
})

// hostsFor is simulated hosts; the test is skipped where there are none.
func hostsFor(t *testing.T) []*host {
	t.Helper()
	if os.Getenv(envHosts) == "" {
		t.Skip("needs simulated hosts: make test-net")
	}
	all, err := lent()
	if err != nil {
		t.Fatalf("%s=%s: %v", envHosts, os.Getenv(envHosts), err)
	}
	return all
}

// change asks for a change of a host: reset, calm, or loss, delay, rate with a
// value.
func (h *host) change(what string, value ...any) error {
	return h.wires.ask(append([]any{what, h.number}, value...)...)
}

// apply lets something happen to hosts and links, in the words of malt sim --at:
// cut:h0->h1, heal:h0->h1, off:h1.
func (w *wires) apply(event string) error { return w.ask("apply", event) }

func (w *wires) ask(what ...any) error {
	request, err := json.Marshal(what)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.conn.Write(append(request, '\n')); err != nil {
		return err
	}
	var failed *string
	if err := w.answers.Decode(&failed); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("%s: %s", request, *failed)
	}
	return nil
}

// command is a program on the host, as a child of this process.
func (h *host) command(argv ...string) *exec.Cmd {
	return exec.Command("nsenter", append(append(h.Enter, "--"), argv...)...)
}

// leftovers is what a job has left on the host, whose processes have all ended:
// sockets that somebody holds, or listens at, and shared memory.
func (h *host) leftovers() (left []string, err error) {
	b, err := h.command("sh", "-c", "cat /proc/net/unix /proc/net/tcp /proc/net/tcp6; ls /dev/shm").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("host %s: %w: %s", h.Name, err, b)
	}
	const listens = "0A"
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0] == "Num" || f[0] == "sl":
		case len(f) > 9 && f[3] != listens && f[9] == "0":
			// A connection without an inode is the kernel's alone, until the other end knows.
		default:
			left = append(left, h.Name+": "+strings.TrimSpace(line))
		}
	}
	return left, nil
}
