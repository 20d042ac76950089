package tests

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// policy says which packages each package may import, beside the standard
// library; ARCHITECTURE.md points here. Names are those of folders in this
// module, or of modules; "x/..." stands for everything at and below x. Tests may
// import what they like.
//
// A package comes with its line. Layers below import nothing from above, the
// mechanisms of one layer nothing from each other, and nobody imports capi.
const policy = `
internal/nearest
internal/say           internal/nearest
internal/explore
internal/fleet         golang.org/x/sys
internal/transcripttest

graphs                 gonum.org/v1/gonum internal/say

rdma                   internal/say
rdma/internal/mem      golang.org/x/sys rdma internal/explore
rdma/internal/bell     rdma rdma/internal/mem
rdma/internal/ends     rdma rdma/internal/mem rdma/box
rdma/internal/dial    rdma/internal/mem
rdma/internal/handshake internal/say rdma rdma/internal/mem
rdma/box               internal/say rdma rdma/internal/mem
rdma/vote              internal/say rdma
rdma/membership        internal/say rdma rdma/vote
rdma/rendezvous        internal/say rdma rdma/internal/mem rdma/vote
rdma/rendezvous/meeting internal/say rdma rdma/internal/mem rdma/internal/dial rdma/internal/handshake internal/say rdma/rendezvous
rdma/rdmatest/inmem    rdma rdma/internal/mem rdma/internal/bell rdma/internal/ends rdma/box rdma/rendezvous
rdma/shm               rdma rdma/internal/mem rdma/internal/ends rdma/box rdma/membership rdma/rendezvous
rdma/wire              rdma/internal/mem rdma/internal/handshake
rdma/remote            internal/say rdma rdma/internal/mem rdma/internal/bell rdma/internal/dial rdma/internal/ends rdma/internal/handshake rdma/box rdma/wire rdma/fabric rdma/vote
rdma/tcp               internal/say rdma rdma/internal/mem rdma/internal/dial rdma/internal/handshake rdma/wire
rdma/mixed             internal/say rdma rdma/box rdma/internal/bell rdma/membership rdma/vote
rdma/fabric            rdma/internal/mem
rdma/ofi               golang.org/x/sys rdma/internal/mem rdma/fabric
rdma/auto              internal/say rdma rdma/internal/mem rdma/internal/handshake internal/say rdma/rendezvous/... rdma/shm rdma/remote rdma/tcp rdma/mixed rdma/vote rdma/wire rdma/fabric rdma/ofi
rdma/explored          rdma rdma/internal/mem rdma/internal/ends rdma/box internal/explore
rdma/rdmatest          rdma internal/fleet
rdma/fabrictest        rdma/internal/mem rdma/fabric internal/fleet
rdma/wiretest          rdma/internal/mem rdma/internal/handshake rdma/wire
rdma/rdmamock          rdma github.com/golang/mock

libmalt                graphs internal/say rdma rdma/auto libmalt/boxes libmalt/butterfly libmalt/codec libmalt/engine libmalt/filter libmalt/internal/core libmalt/narrow libmalt/reduce libmalt/route/... libmalt/rows libmalt/rule libmalt/shards libmalt/spvec
libmalt/boxes          graphs internal/say rdma libmalt/codec libmalt/filter libmalt/internal/core libmalt/reduce libmalt/rule libmalt/spvec
libmalt/internal/core  internal/say rdma libmalt/progress libmalt/reduce libmalt/rule
libmalt/engine         internal/say rdma libmalt/boxes libmalt/codec libmalt/internal/core libmalt/reduce
libmalt/routetest      libmalt rdma internal/fleet
libmalt/progress       rdma
libmalt/codec          internal/say rdma libmalt/filter libmalt/internal/core libmalt/reduce libmalt/spvec
libmalt/filter         internal/say libmalt/spvec
libmalt/butterfly      graphs internal/say rdma libmalt/engine libmalt/internal/core libmalt/reduce
libmalt/shards         graphs internal/say rdma libmalt/engine libmalt/filter libmalt/internal/core libmalt/reduce libmalt/spvec
libmalt/rows           graphs internal/say rdma libmalt/internal/core libmalt/reduce libmalt/spvec
libmalt/route/shared   rdma libmalt/internal/core libmalt/reduce
libmalt/route/hosts    internal/say rdma libmalt/exchange libmalt/internal/core libmalt/narrow libmalt/reduce
libmalt/exchange       rdma internal/say libmalt/narrow
libmalt/narrow         internal/say
libmalt/reduce         internal/say
libmalt/spvec          libmalt/reduce internal/say
libmalt/rule           internal/say rdma

tests/bench/ranks/pingpong

capi                   golang.org/x/sys graphs rdma/... libmalt/... internal/nearest internal/say
`

// Pseudo-packages that weaken what Go promises, and the only users of each.
var reserved = map[string][]string{
	"C":      {"capi", "rdma/ofi", "libmalt/reduce"},
	"unsafe": {"capi", "rdma/internal/mem", "rdma/ofi", "libmalt/narrow", "libmalt/reduce", "libmalt/spvec"},
}

const module = "malt"

// root is the module's folder, from here.
const root = "../.."

// imports lists what each package of the module imports, by folder: in every
// file but tests, whatever system or build tag the file is for.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || p == filepath.Join(root, "build")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		all[folder] = append(all[folder], "") // a package without imports is one too
		for _, i := range f.Imports {
			to, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			all[folder] = append(all[folder], to)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, list := range all {
		slices.Sort(list)
		all[folder] = slices.Compact(list)[1:] // never nil
	}
	return all
}

// parsePolicy returns the lines of a policy by their first words.
func parsePolicy(text string) map[string][]string {
	lines := map[string][]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 {
			lines[f[0]] = f[1:]
		}
	}
	return lines
}

// breaches are the edges that the policy does not allow, as sentences.
func breaches(all, lines map[string][]string) (list []string) {
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		allowed, ok := lines[folder]
		if !ok {
			list = append(list, "package "+folder+" has no line in the policy: add one that says what it may import")
			continue
		}
		for _, to := range all[folder] {
			if users, ok := reserved[to]; ok {
				if !slices.Contains(users, folder) {
					list = append(list, folder+" imports "+strconv.Quote(to)+", which is for "+strings.Join(users, ", ")+" alone")
				}
			} else if name, ours := inModule(to); ours || !standard(to) {
				if !slices.ContainsFunc(allowed, func(a string) bool { return covers(a, name) }) {
					list = append(list, folder+" imports "+name+"; it may import the standard library and: "+strings.Join(allowed, ", "))
				}
			}
		}
	}
	return list
}

// inModule returns the folder of a package of this module, and other import
// paths as they are.
func inModule(to string) (name string, ours bool) {
	if to == module {
		return ".", true
	}
	if rest, ok := strings.CutPrefix(to, module+"/"); ok {
		return rest, true
	}
	return to, false
}

// standard: import paths of other modules begin with a host name.
func standard(to string) bool {
	first, _, _ := strings.Cut(to, "/")
	return !strings.Contains(first, ".")
}

// covers tells whether an entry of the policy allows a package: the folder
// itself, all below "x/...", any package of a module that has a host name.
func covers(entry, name string) bool {
	if below, ok := strings.CutSuffix(entry, "/..."); ok {
		return name == below || strings.HasPrefix(name, below+"/")
	}
	return entry == name || !standard(entry) && strings.HasPrefix(name, entry+"/")
}

func TestImports(t *testing.T) {
	all := imports(t)
	if len(all) < 4 {
		t.Fatalf("only %d packages found: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
	lines := parsePolicy(policy)
	for _, b := range breaches(all, lines) {
		t.Error(b)
	}
	for folder := range lines {
		if all[folder] == nil {
			t.Errorf("the policy has a line for %s, which is no package", folder)
		}
	}
}

// Nobody imports capi: what it may import, nothing may import back.
func TestPolicyHasNoWayBack(t *testing.T) {
	lines := parsePolicy(policy)
	for folder, allowed := range lines {
		for _, a := range allowed {
			if covers(a, "capi") {
				t.Errorf("%s may import capi", folder)
			}
			if covers(a, folder) && !strings.HasSuffix(a, "/...") {
				t.Errorf("%s may import itself", folder)
			}
			if base := path.Clean(strings.TrimSuffix(a, "/...")); standard(a) && lines[base] == nil && base == a {
				t.Errorf("%s may import %s, which has no line", folder, a)
			}
		}
	}
}

// The check itself: each of these must be found.
func TestBreachesAreFound(t *testing.T) {
	lines := parsePolicy("a gonum.org/v1/gonum\nb a c/...\nlibmalt/reduce")
	for _, c := range []struct {
		folder, to string
		allowed    bool
	}{
		{"a", "fmt", true},
		{"a", "encoding/json", true},
		{"a", "gonum.org/v1/gonum/graph", true},
		{"a", "gonum.org/v1/gonumerics", false},
		{"a", "golang.org/x/sys/unix", false},
		{"a", "malt/b", false},
		{"b", "malt/a", true},
		{"b", "malt/a/internal", false},
		{"b", "malt/c", true},
		{"b", "malt/c/d", true},
		{"b", "malt/cd", false},
		{"b", "malt", false},
		{"a", "unsafe", false},
		{"a", "C", false},
		{"libmalt/reduce", "C", true},
		{"none", "fmt", false}, // no line
	} {
		got := breaches(map[string][]string{c.folder: {c.to}}, lines)
		if (len(got) == 0) != c.allowed {
			t.Errorf("%s importing %s: %q", c.folder, c.to, got)
		}
	}
}

// onlyFrom are packages that a single file of another package may import: the table that
// chooses among them.
var onlyFrom = map[string]string{
	"malt/libmalt/route/": "libmalt/route.go",
}

func TestChoicesAreTables(t *testing.T) {
	for prefix, table := range onlyFrom {
		files, err := filepath.Glob(filepath.Join(root, filepath.Dir(table), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		named := false
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				if !strings.HasPrefix(strings.Trim(i.Path.Value, `"`), prefix) {
					continue
				}
				if file == filepath.Join(root, table) {
					named = true
				} else {
					t.Errorf("%s imports %s: only %s may", file, i.Path.Value, table)
				}
			}
		}
		if !named {
			t.Errorf("%s imports nothing of %s: keep this table in step with the code", table, prefix)
		}
	}
}
