package mem

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

// system is a root file system with the given files.
func system(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

const (
	mountV1 = "35 31 0:32 ROOT /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
	mountV2 = "41 31 0:38 ROOT /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
)

func mounted(mount, root string) string { return strings.Replace(mount, "ROOT", root, 1) }

func TestFree(t *testing.T) {
	const meminfo = "MemTotal:  2000 kB\nMemAvailable:    1000 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		free  uint64
		limit string
	}{
		{"nothing readable", nil, math.MaxUint64, "no limit known"},
		{"machine only", map[string]string{"proc/meminfo": meminfo}, 1000 << 10, "the machine"},
		{"version 1", map[string]string{
			"proc/meminfo":        meminfo,
			"proc/self/cgroup":    "8:pids:/x\n4:memory:/a/b\n0::/\n",
			"proc/self/mountinfo": "1 2 0:3 / / rw - ext4 /dev/root rw\n" + mounted(mountV1, "/"),
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "50000\n",
			"sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "20000\n",
			"sys/fs/cgroup/memory/a/b/memory.stat":           "inactive_file 1\ntotal_inactive_file 3000\ntotal_active_file 2000\ntotal_dirty 1000\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "9223372036854771712\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes":   "20000\n",
		}, 50000 - 20000 + 4000, "control group /sys/fs/cgroup/memory/a/b"},
		{"the parent is tighter", map[string]string{
			"proc/self/cgroup":                               "4:cpu,memory:/a/b\n",
			"proc/self/mountinfo":                            mounted(mountV1, "/"),
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "50000\n",
			"sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "0\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "60000\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes":   "59000\n",
		}, 1000, "control group /sys/fs/cgroup/memory/a"},
		{"more used than allowed", map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"proc/self/mountinfo":                        mounted(mountV1, "/"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "10\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "20\n",
		}, 0, "control group"},
		{"version 2", map[string]string{
			"proc/meminfo":                          meminfo,
			"proc/self/cgroup":                      "0::/user/job\n",
			"proc/self/mountinfo":                   mounted(mountV2, "/"),
			"sys/fs/cgroup/user/job/memory.max":     "max\n",
			"sys/fs/cgroup/user/job/memory.current": "70000\n",
			"sys/fs/cgroup/user/memory.max":         "80000\n",
			"sys/fs/cgroup/user/memory.current":     "70000\n",
			"sys/fs/cgroup/user/memory.stat":        "anon 1\ninactive_file 500\nactive_file 700\nfile_dirty 200\n",
		}, 11000, "control group /sys/fs/cgroup/user"},
		{"a container that sees its group as the top", map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/abc\n",
			"proc/self/mountinfo":                        mounted(mountV1, "/docker/abc"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "1000\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
		}, 999, "control group /sys/fs/cgroup/memory"},
		{"a path that leads outside", map[string]string{
			"proc/self/cgroup":              "0::/../other\n",
			"proc/self/mountinfo":           mounted(mountV2, "/mine"),
			"sys/fs/cgroup/memory.max":      "1000\n",
			"sys/fs/cgroup/memory.current":  "1\n",
			"sys/fs/cgroup/memory.pressure": "\n",
		}, 999, "control group /sys/fs/cgroup"},
		{"blanks in the mount point", map[string]string{
			"proc/self/cgroup":     "0::/\n",
			"proc/self/mountinfo":  `41 31 0:38 / /my\040groups rw - cgroup2 cgroup2 rw` + "\n",
			"my groups/memory.max": "1000\n", "my groups/memory.current": "1\n",
		}, 999, "control group /my groups"},
		{"unreadable numbers", map[string]string{
			"proc/meminfo":                         "MemAvailable: many kB\n",
			"proc/self/cgroup":                     "nonsense\n0::/\n",
			"proc/self/mountinfo":                  "short\n" + mounted(mountV2, "/"),
			"sys/fs/cgroup/memory.max":             "lots\n",
			"sys/fs/cgroup/memory.current":         "1\n",
			"sys/fs/cgroup/memory.limit_in_bytes":  "1\n",
			"sys/fs/cgroup/memory.usage_in_bytes2": "1\n",
		}, math.MaxUint64, "no limit known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, limit := free(system(c.files))
			if n != c.free || !strings.Contains(limit, c.limit) {
				t.Errorf("free = %d within %q, expected %d within %q", n, limit, c.free, c.limit)
			}
		})
	}
}

func TestFreeOfThisMachine(t *testing.T) {
	n, limit := Free()
	if n == 0 || n == math.MaxUint64 {
		t.Errorf("Free() = %d, %s: expected a limit to be found on Linux", n, limit)
	}
}

func TestClaimsOfOthersCount(t *testing.T) {
	promised := uint64(1) << 60
	c := Claims{Mine: new(Word), Others: func() uint64 { return promised }}
	var short *ShortError
	if b, err := c.Map(64 << 20); !errors.As(err, &short) {
		t.Fatalf("Map = %d bytes, %v; expected a *ShortError since all is promised", len(b), err)
	}
	if got := c.Mine.Load(); got != 0 {
		t.Errorf("a refused claim left %d bytes claimed", got)
	}
	if !strings.Contains(short.Error(), "64.0 MiB wanted") {
		t.Errorf("the error does not say how much was wanted: %v", short)
	}
	promised = 0
	b, err := c.Map(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Mine.Load(); got != 0 {
		t.Errorf("a granted claim left %d bytes claimed", got)
	}
	if err := Unmap(b); err != nil {
		t.Error(err)
	}
}

// A wish that cannot be met is not shown to the others, who would find nothing
// left as long as it stands.
func TestHopelessClaimIsNotShown(t *testing.T) {
	shown := false
	c := Claims{Mine: new(Word), Others: func() uint64 { shown = true; return 0 }}
	var short *ShortError
	if b, err := c.Map(1 << 45); !errors.As(err, &short) {
		t.Fatalf("Map = %d bytes, %v; expected a *ShortError", len(b), err)
	}
	if shown || c.Mine.Load() != 0 {
		t.Errorf("it was shown: %v; still claimed: %d", shown, c.Mine.Load())
	}
}

func TestClaimGoesDownWhilePopulating(t *testing.T) {
	c := Claims{Mine: new(Word)}
	var seen []uint64
	const n = 2*step + 5
	err := c.claim(n, nil, func(from, to int) error {
		seen = append(seen, c.Mine.Load())
		return nil
	})
	if err != nil || len(seen) != 3 || seen[0] != n || seen[1] != step+5 || seen[2] != 5 {
		t.Errorf("claims %v, %v; expected %d, %d, 5", seen, err, n, step+5)
	}
	c.Mine.Store(0)
	broken := errors.New("broken")
	if err := c.claim(n, nil, func(from, to int) error { return broken }); err != broken || c.Mine.Load() != 0 {
		t.Errorf("a failed step: %v, still claimed %d", err, c.Mine.Load())
	}
}

func TestAmount(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 3 << 29: "1.5 GiB", math.MaxUint64: "16.0 EiB"} {
		if got := amount(n); got != want {
			t.Errorf("amount(%d) = %q, expected %q", n, got, want)
		}
	}
}
