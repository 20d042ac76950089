package processes

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"malt/internal/fleet"
)

// leftovers is an error that names what a job has left on the machine. All of
// its ranks have ended.
func (j *job) leftovers() error {
	var left []string
	sockets, err := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(sockets)) {
		if strings.Contains(line, j.id) {
			left = append(left, "socket "+strings.TrimSpace(line))
		}
	}
	for _, dir := range []string{"/dev/shm", j.dir} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if dir == j.dir || strings.Contains(e.Name(), j.id) || strings.Contains(strings.ToLower(e.Name()), "malt") {
				left = append(left, "file "+filepath.Join(dir, e.Name()))
			}
		}
	}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environs {
		b, err := os.ReadFile(name) // fails where the process has just ended
		if err == nil && bytes.Contains(b, []byte(j.id)) {
			left = append(left, "process "+filepath.Base(filepath.Dir(name)))
		}
	}
	for _, h := range j.hosts {
		more, failed := h.leftovers()
		left, err = append(left, more...), errors.Join(err, failed)
	}
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("left behind: %s", strings.Join(left, "; ")))
	}
	return err
}

// inventory is what a process holds that a job may not keep.
type inventory struct {
	goroutines int
	files      []string // descriptors with what they are
	mappings   []string // of MALT's memory
}

// takeInventory counts what there is now.
func takeInventory() (inventory, error) {
	v := inventory{goroutines: runtime.NumGoroutine()}
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return v, err
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && to != fmt.Sprintf("/proc/%d/fd", os.Getpid()) { // not the one that is just being read
			v.files = append(v.files, e.Name()+" "+to)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "malt-") { // the names that MALT gives its memory
			v.mappings = append(v.mappings, strings.TrimSpace(line))
		}
	}
	return v, err
}

// more is an error that names what v has beyond before.
func (v inventory) more(before inventory) error {
	var errs []error
	if v.goroutines > before.goroutines {
		all := make([]byte, 1<<20)
		all = all[:runtime.Stack(all, true)]
		errs = append(errs, fmt.Errorf("%d goroutines more than before:\n%s", v.goroutines-before.goroutines, all))
	}
	for _, c := range []struct {
		what        string
		now, before []string
	}{{"open file", v.files, before.files}, {"mapping", v.mappings, before.mappings}} {
		for _, x := range c.now {
			if !slices.Contains(c.before, x) {
				errs = append(errs, errors.New(c.what+" left: "+x))
			}
		}
	}
	return errors.Join(errs...)
}

// backTo waits, as goroutines take a moment to end, until this process holds no
// more than before.
func backTo(before inventory) error {
	for deadline := time.Now().Add(fleet.Patience); ; time.Sleep(time.Millisecond) {
		v, err := takeInventory()
		if err != nil {
			return err
		}
		if err = v.more(before); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// warmUp has the runtime open what it keeps for ever, so that it is in the
// inventory before.
func warmUp() error {
	l, err := net.Listen("unix", "@malt-test-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		return err
	}
	return l.Close()
}
