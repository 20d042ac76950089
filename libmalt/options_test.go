package libmalt

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestOptionsRefuse(t *testing.T) {
	for in, want := range map[string]string{
		"grpah=all":                   "Did you mean \"graph\"?",
		"graph":                       "expected key=value",
		"=all":                        "expected key=value",
		"graph=":                      "has no value",
		"graph=all graph=ring":        "given twice",
		"graph=haltn":                 "halton",
		"consistency=ssp:-1":          "ssp:-1",
		"fold=maen":                   "mean",
		"start=sane":                  "same, own",
		"uneven=fail":                 "ok, error",
		"allow_disconnected=maybe":    "true, false",
		"graph=halton-paper":          "",
		"graph=lists:1/0/9/2/0/0/0/0": "9",
	} {
		m, err := defaultMode(8)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.with(in, 8, newVector)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q in it", in, err, want)
		}
	}
}

func TestOptionsDefaultsAndChanges(t *testing.T) {
	m, err := defaultMode(8)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.agreed(); got != "graph=all consistency=bsp" {
		t.Errorf("defaults: %q", got)
	}
	m, err = m.with(" graph=halton-paper\tallow_disconnected=true\nconsistency=notify-ack fold=max start=own ", 8, newVector)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.agreed() + " " + m.fold.String(); got != "graph=halton-paper consistency=notify-ack:1 start=own max" {
		t.Errorf("got %q", got)
	}
	if kept, err := m.with("fold=sum", 8, newVector); err != nil || kept.agreed() != m.agreed() {
		t.Errorf("what is not named must stay: %q, %v", kept.agreed(), err)
	}
}

// A vector that sends its changes to all has no engine, which other graphs of changes need.
func TestGraphOfChangesStays(t *testing.T) {
	m, err := defaultMode(8)
	if err == nil {
		m, err = m.with("fold=sum-changes consistency=async", 8, newVector)
	}
	if err != nil {
		t.Fatal(err)
	}
	for graph, want := range map[string]error{"all": nil, "butterfly": ErrInvalid, "butterfly:4x2": ErrInvalid, "shards": ErrInvalid, "ring": ErrInvalid} {
		if _, err := m.with("graph="+graph, 8, openVector); !errors.Is(err, want) {
			t.Errorf("graph=%s: %v; want %v", graph, err, want)
		}
	}
}

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(key string) string { return m[key] }
}

func TestConfigFromEnv(t *testing.T) {
	c, err := ConfigFromEnv(env())
	if err != nil || c.Size != 1 || c.Rank != 0 || c.Timeout != DefaultTimeout || c.validate() != nil {
		t.Errorf("without variables: %+v, %v", c, err)
	}
	c, err = ConfigFromEnv(env("MALT_RANK", "2", "MALT_SIZE", "4", "MALT_STORE", "local:ab", "MALT_TOKEN", "sixteen letters!", "MALT_TIMEOUT", "1.5",
		"MALT_STORE_FD", "7,9", "MALT_INTERFACE", "^docker*", "MALT_TOGETHER", "2-3", "MALT_CONGESTION", "reno", "MALT_FABRIC", "efa", "MALT_LIBFABRIC", "/lib/f.so", "MALT_UNREACHABLE", "2.5", "MALT_EVENTS", "100"))
	want := Config{Rank: 2, Size: 4, Store: "local:ab", Token: "sixteen letters!", Timeout: 1500 * time.Millisecond, Transport: "auto", StoreFD: []int{7, 9}, Interface: "^docker*", Together: "2-3", Congestion: "reno", Fabric: "efa", Libfabric: "/lib/f.so", Unreachable: 2500 * time.Millisecond, Events: 100}
	if err != nil || !reflect.DeepEqual(c, want) || c.validate() != nil {
		t.Errorf("got %+v, %v; want %+v", c, err, want)
	}
	if err := c.Set("rank=3 timeout=7"); err != nil || c.Rank != 3 || c.Timeout != 7*time.Second {
		t.Errorf("Set: %+v, %v", c, err)
	}
}

func TestConfigRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"rank=-1": "from 0 to", "rank=x": "whole number", "size=0": "from 1 to", "size=99999": "from 1 to", "store_fd=0": "at least 1", "store_fd=socket": "whole number", "store_fd=5,": "by commas",
		"timeout=0": "positive", "timeout=NaN": "positive", "timeout=inf": "positive", "timeout=soon": "positive", "unreachable=0.1": "2 or more", "unreachable=NaN": "2 or more", "events=2000000": "from 0 to", "token=fifteen-letters": "16 or more", "rnak=1": `Did you mean "rank"?`,
	} {
		c := Config{Size: 1}
		if err := c.Set(in); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q in it", in, err, want)
		}
	}
	if err := (Config{Rank: 3, Size: 3, Store: "local:ab"}).validate(); !errors.Is(err, ErrInvalid) {
		t.Errorf("rank 3 of 3: %v", err)
	}
	if err := (Config{Size: 1, Unreachable: time.Second}).validate(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "2 or more") {
		t.Errorf("unreachable=1 where a death ends the job: %v", err)
	}
	if err := (Config{Size: 1, Unreachable: time.Second, Continue: true}).validate(); err != nil {
		t.Errorf("unreachable=1 where it does not: %v", err)
	}
	if err := (Config{Rank: 1, Size: 3}).validate(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "malt run -n 3") {
		t.Errorf("no store: %v", err)
	}
	c, err := ConfigFromEnv(env("MALT_STORE", "node1:29500", "MALT_RANK", "1"))
	if err != nil || !strings.Contains(fmt.Sprint(c.validate()), "MALT_SIZE") {
		t.Errorf("no size: %v, %v", err, c.validate())
	}
	if err := c.Set("size=2"); err != nil || c.validate() != nil {
		t.Errorf("size=2: %v, %v", err, c.validate())
	}
	_, err = ConfigFromEnv(env("MALT_SIZE", "many"))
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "MALT_SIZE") {
		t.Errorf("bad variable: %v", err)
	}
	_, err = ConfigFromEnv(env("MALT_KERNEL", "avx3"))
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `MALT_KERNEL "avx3" is not known`) {
		t.Errorf("unknown kernel: %v", err)
	}
	if _, err = ConfigFromEnv(env("MALT_KERNEL", "go")); err != nil {
		t.Errorf("known kernel: %v", err)
	}
}

// FuzzOptions: the grammar never panics, and what it accepts is told in a form
// that it accepts again, to the same effect.
func FuzzOptions(f *testing.F) {
	for _, s := range []string{
		"", "graph=halton consistency=ssp:2", "graph=lists:1/2/3/0 fold=max", "graph=random:2:7 start=own",
		"consistency=notify-ack:3 allow_disconnected=1", "graph=", "a=b=c", "graph=all graph=all",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := defaultMode(4)
		if err != nil {
			t.Fatal(err)
		}
		m, err = m.with(s, 4, newVector)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%q: %v is not ErrInvalid", s, err)
			}
			return
		}
		again, err := m.with(m.agreed()+" fold="+m.fold.String()+" allow_disconnected=true", 4, newVector)
		if err != nil || again.agreed() != m.agreed() || again.fold != m.fold {
			t.Fatalf("%q became %q, which became %q (%v)", s, m.agreed(), again.agreed(), err)
		}
	})
}
