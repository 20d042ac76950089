package graphs

import (
	"fmt"
	"slices"
	"testing"
)

// In the stages of a butterfly each rank hears of each other once: of those for which a member of
// its group stands. That is so for every factoring of 1 to 24 ranks.
func TestStagesReachEverybodyOnce(t *testing.T) {
	for size := 1; size <= 24; size++ {
		for _, spec := range append(factorings(size), "butterfly") {
			g := parse(t, spec, size)
			for rank := range size {
				heard := []int{rank}
				for _, s := range g.Stages(rank) {
					if !slices.Contains(s.Group, rank) || s.First(rank) > rank || rank >= s.First(rank)+s.Ranks {
						t.Fatalf("%s of %d: rank %d is not in its own stage %v", spec, size, rank, s)
					}
					for _, from := range s.Group {
						if from == rank {
							continue
						}
						if back := g.Stages(from); !slices.ContainsFunc(back, func(o Stage) bool { return slices.Equal(o.Group, s.Group) }) {
							t.Fatalf("%s of %d: rank %d has %d in its group %v, and not the other way round", spec, size, rank, from, s.Group)
						}
						for i := range s.Ranks {
							heard = append(heard, s.First(from)+i)
						}
					}
				}
				slices.Sort(heard)
				if len(heard) != size || len(slices.Compact(heard)) != size {
					t.Errorf("%s of %d: rank %d hears of %v", spec, size, rank, heard)
				}
			}
		}
	}
}

func factorings(n int) (list []string) {
	var find func(spec string, left int)
	find = func(spec string, left int) {
		if left == 1 && spec != "" {
			list = append(list, "butterfly:"+spec[1:])
		}
		for f := 2; f <= left; f++ {
			if left%f == 0 {
				find(fmt.Sprintf("%sx%d", spec, f), left/f)
			}
		}
	}
	find("", n)
	return list
}

// The first stages of a butterfly of hosts stay within one.
func TestButterflyOfHosts(t *testing.T) {
	for _, c := range []struct {
		ranks, hosts int
		want         string
	}{{1, 1, "butterfly"}, {4, 1, "butterfly:2x2"}, {6, 2, "butterfly:2x3x2"}, {1, 5, "butterfly:5"}, {3, 4, "butterfly:3x2x2"}} {
		spec := Butterfly(c.ranks, c.hosts)
		if spec != c.want {
			t.Errorf("%d ranks of %d hosts: %s, want %s", c.ranks, c.hosts, spec, c.want)
		}
		g := parse(t, spec, c.ranks*c.hosts)
		far := 0
		for _, s := range g.Stages(0) {
			if s.Group[len(s.Group)-1] >= c.ranks {
				far += len(s.Group) - 1
			} else if far > 0 {
				t.Errorf("%s: stage %v comes after one between hosts", spec, s.Group)
			}
		}
	}
}

// The vertices of Twitter, of the paper: 16x4, which it found best, and so few messages that the
// next larger group of any stage would send some below 2 MB.
func TestDegreesOfRows(t *testing.T) {
	for _, c := range []struct {
		arg  string
		size int
		want string
	}{
		{"50MB/0.21", 64, "butterfly:16x4"},
		{"5e1MB/1", 64, "butterfly:16x2x2"},
		{"1000MB/0.1", 24, "butterfly:24"},
		{"0.001MB/0.5", 12, "butterfly:2x2x3"},
		{"4MB/1e-6", 7, "butterfly:7"},
		{"4MB/0.5", 1, "butterfly"},
	} {
		if got := parse(t, "butterfly:"+c.arg, c.size).String(); got != c.want {
			t.Errorf("%s of %d ranks: %s, want %s", c.arg, c.size, got, c.want)
		}
	}
}

func TestButterflyIsRefused(t *testing.T) {
	for spec, size := range map[string]int{
		"butterfly:": 8, "butterfly:4": 8, "butterfly:4x3": 8, "butterfly:8x1": 8, "butterfly:2x2x": 4, "butterfly:+2x2": 4,
		"butterfly:a": 8, "butterfly:99999999999999999999": 8, "butterfly:32768x32768x32768": 8, "butterfly:-2x-4": 8,
		"butterfly:2x2x2x79x167x6709x10223x12301x14087": 8, // which is 8 in 64 bits
		"butterfly:MB/0.2": 8, "butterfly:50MB/": 8, "butterfly:50MB/0": 8, "butterfly:0MB/1": 8, "butterfly:50MB/2": 8, "butterfly:InfMB/0.5": 8, "butterfly:50MB/NaN": 8,
	} {
		_, err := Parse(spec, size)
		wantError(t, err, "butterfly", "Write")
	}
}

func TestGoldenStages(t *testing.T) {
	golden(t, "butterfly-8.txt", parse(t, "butterfly:4x2", 8).Text())
}
