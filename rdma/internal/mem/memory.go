package mem

import (
	"bufio"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"malt/rdma"
)

// ShortError says that memory is not there. Nothing was reserved. It is an
// rdma.ErrNoMemory.
type ShortError struct {
	Want  uint64 // bytes asked for
	Free  uint64 // bytes that are free, as far as is known
	Limit string // what sets the limit
	Maps  uint64 // where it is the number of mappings that does: how many there are
}

// Is is for errors.Is.
func (e *ShortError) Is(target error) bool { return target == rdma.ErrNoMemory }

func (e *ShortError) Error() string {
	if e.Maps > 0 {
		return fmt.Sprintf("this process has %d memory mappings, the most that the kernel allows (vm.max_map_count); make fewer vectors, or raise it: sysctl -w vm.max_map_count=%d",
			e.Maps, 4*e.Maps)
	}
	return fmt.Sprintf("%s wanted, %s free within %s",
		amount(e.Want), amount(e.Free), e.Limit)
}

// slack is left free beside what is asked for: page tables, the kernel's own
// batches per core, and the stacks of this process.
func slack(n uint64) uint64 { return n/128 + 4<<20 }

// check fails with a *ShortError unless n bytes are free beyond those that
// others are about to take.
func check(n, others uint64) error {
	free, limit := Free()
	free -= min(free, others)
	if n > free || slack(n) > free-n {
		return &ShortError{Want: n, Free: free, Limit: limit}
	}
	return nil
}

// Free is how many bytes can still be populated without the kernel killing
// somebody for it, and what sets that limit: the machine's available memory or
// a control group's limit, whichever leaves less. Swap does not count: a vector
// that is swapped out is of no use. Where nothing can be read the answer is
// "no limit known", the largest uint64.
func Free() (uint64, string) { return free(os.DirFS("/")) }

func free(root fs.FS) (uint64, string) {
	least, limit := uint64(math.MaxUint64), "no limit known"
	if kb, ok := field(root, "proc/meminfo", "MemAvailable:"); ok {
		least, limit = kb<<10, "the machine's available memory"
	}
	for _, g := range memoryGroups(root) {
		if n, ok := g.free(root); ok && n < least {
			least, limit = n, "the memory limit of control group /"+g.dir
		}
	}
	return least, limit
}

// group is one control group with a memory controller. The two versions differ
// in the names of their files only.
type group struct {
	dir string // in root
	v2  bool
}

// free is what the group's limit leaves: the limit less the usage, where the
// file cache that the kernel can drop at once does not count as used. ok is
// false for a group without a limit.
func (g group) free(root fs.FS) (n uint64, ok bool) {
	limitFile, usageFile, prefix := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
	dirty := "dirty"
	if g.v2 {
		limitFile, usageFile, prefix, dirty = "memory.max", "memory.current", "", "file_dirty"
	}
	limit, ok := number(root, path.Join(g.dir, limitFile))
	if !ok || limit >= math.MaxInt64/2 { // "max", or version 1's way of saying so
		return 0, false
	}
	used, ok := number(root, path.Join(g.dir, usageFile))
	if !ok {
		return 0, false
	}
	stat := path.Join(g.dir, "memory.stat")
	inactive, _ := field(root, stat, prefix+"inactive_file")
	active, _ := field(root, stat, prefix+"active_file")
	waiting, _ := field(root, stat, prefix+dirty)
	droppable := inactive + active
	droppable -= min(droppable, waiting)
	used -= min(used, droppable)
	return limit - min(limit, used), true
}

// memoryGroups lists this process's memory control groups with all that enclose
// them, of both versions.
func memoryGroups(root fs.FS) (groups []group) {
	paths := map[bool]string{} // version 2? -> this process's path in the hierarchy
	lines(root, "proc/self/cgroup", func(line string) bool {
		part := strings.SplitN(line, ":", 3) // number:controllers:path
		if len(part) != 3 {
			return true
		}
		if part[0] == "0" && part[1] == "" {
			paths[true] = part[2]
		} else if has(part[1], "memory") {
			paths[false] = part[2]
		}
		return true
	})
	lines(root, "proc/self/mountinfo", func(line string) bool {
		// id parent device ROOT POINT options [optional…] - TYPE source OPTIONS
		before, after, _ := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if len(b) < 5 || len(a) < 3 {
			return true
		}
		v2 := a[0] == "cgroup2"
		if !v2 && (a[0] != "cgroup" || !has(a[2], "memory")) {
			return true
		}
		own, ok := paths[v2]
		if !ok {
			return true
		}
		// A container sees its group mounted as the top: then ROOT is a prefix
		// of the path, or the path leads out of what can be seen.
		mounted, point := b[3], strings.Trim(unescape(b[4]), "/")
		below, inside := strings.CutPrefix(own, strings.TrimSuffix(mounted, "/"))
		if !inside {
			below = "/"
		}
		for dir := path.Join("/", below); ; dir = path.Dir(dir) {
			groups = append(groups, group{path.Join(point, dir), v2})
			if dir == "/" {
				return true
			}
		}
	})
	return groups
}

// has tells whether the comma-separated list holds word.
func has(list, word string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if item == word {
			return true
		}
	}
	return false
}

// unescape undoes the octal escapes of blanks in mountinfo.
func unescape(s string) string { return strings.ReplaceAll(s, `\040`, " ") }

// lines calls f for each line of the file until it returns false; a file that
// cannot be read has none.
func lines(root fs.FS, name string, f func(line string) bool) {
	file, err := root.Open(name)
	if err != nil {
		return
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		if !f(s.Text()) {
			return
		}
	}
}

// field is the number behind the word key at the start of a line.
func field(root fs.FS, name, key string) (n uint64, ok bool) {
	lines(root, name, func(line string) bool {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key {
			v, err := strconv.ParseUint(f[1], 10, 64)
			n, ok = v, err == nil
			return false
		}
		return true
	})
	return n, ok
}

// number is the number that a file consists of.
func number(root fs.FS, name string) (uint64, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

// amount writes a number of bytes for people.
func amount(n uint64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}
