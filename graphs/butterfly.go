package graphs

import (
	"math"
	"strconv"
	"strings"

	"malt/internal/say"
)

// butterfly joins ranks in stages. In each a rank exchanges with the others of a group, and
// then stands for all of the group: after the last for everybody. arg has the number of ranks
// of a group in each stage, such as 4x2 of 8 ranks; "": the prime factors of the size; or what
// Degrees takes, such as 50MB/0.21.
//
// A rank's number is read with one digit for each stage, the lowest first. The ranks of a
// group differ in that digit alone. So the first stages stay within a host where their product
// divides its number of ranks.
func butterfly(size int, arg string) (*Graph, error) {
	degrees, err := degreesOf(size, arg)
	if err != nil {
		return nil, err
	}
	stages := &Graph{degrees: degrees}
	lists := make([][]int, size)
	for rank := range lists {
		for _, s := range stages.Stages(rank) {
			for _, r := range s.Group {
				if r != rank {
					lists[rank] = append(lists[rank], r)
				}
			}
		}
	}
	g := fromValid(lists)
	g.degrees, g.spec = degrees, "butterfly"
	if arg != "" {
		g.spec = spec(degrees)
	}
	return g, nil
}

func degreesOf(size int, arg string) (degrees []int, err error) {
	if arg == "" {
		return append([]int{}, primes(size)...), nil
	}
	if megabytes, share, ok := strings.Cut(arg, "MB/"); ok {
		holds, err := strconv.ParseFloat(megabytes, 64)
		part, wrong := strconv.ParseFloat(share, 64)
		if err != nil || wrong != nil || !(holds > 0 && holds <= math.MaxInt64 && part > 0 && part <= 1) {
			return nil, say.Errorf(nil, "graph butterfly:%s: expected how large the rows of a rank are, and which share of all rows it has", quote(arg)).
				Try("Write such as butterfly:50MB/0.21: 50 MB, which are rows of 21 %% of all ids.")
		}
		return Degrees(size, holds, part), nil
	}
	product := 1
	for _, word := range strings.Split(arg, "x") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 2 || n > MaxSize || strconv.Itoa(n) != word {
			return nil, say.Errorf(nil, "graph butterfly:%s: %s is not a number of ranks", quote(arg), quote(word)).
				Try("Write numbers of at least 2 with an x between them, whose product is the number of ranks, such as butterfly:4x2 for 8.")
		}
		degrees = append(degrees, n)
		product = min(product*n, 2*MaxSize)
	}
	if product != size {
		return nil, say.Errorf(nil, "graph butterfly:%s does not fit %s", arg, count(size, "rank")).
			At("the product of its numbers has to be %d", size).Try("Write %s, or butterfly alone, which finds numbers for any size.", Butterfly(size, 1))
	}
	return degrees, nil
}

// Butterfly is the butterfly of as many hosts, each with so many ranks whose numbers follow each
// other: its first stages stay within a host, and between hosts each rank has the fewest copies
// to send.
func Butterfly(ranks, hosts int) string { return spec(append(primes(ranks), primes(hosts)...)) }

func spec(degrees []int) string {
	text, separator := "butterfly", ":"
	for _, d := range degrees {
		text += separator + strconv.Itoa(d)
		separator = "x"
	}
	return text
}

// pays is how many MB a message has at least so that its number costs less than its bytes: in the
// paper of Sparse Allreduce 2 to 4.
const pays = 2

// Degrees are for rows with ids, of which each rank holds so many MB, and this share of all ids,
// drawn at random: in each stage the largest group in which messages pay, or else the smallest.
// The stages before have made a rank's rows those of more ranks, and of fewer ids.
func Degrees(size int, megabytes, share float64) []int {
	degrees := []int{}
	for ranks := 1; ranks < size; {
		held := megabytes / share * (1 - math.Pow(1-share, float64(ranks))) / float64(ranks)
		left := size / ranks
		degree := primes(left)[0]
		for d := degree; d <= left; d++ {
			if left%d == 0 && held/float64(d) >= pays {
				degree = d
			}
		}
		degrees = append(degrees, degree)
		ranks *= degree
	}
	return degrees
}

// primes are the prime factors of n, ascending.
func primes(n int) (list []int) {
	for p := 2; n > 1; p++ {
		for ; n%p == 0; n /= p {
			list = append(list, p)
		}
	}
	return list
}

// Stage is what a rank of a butterfly does in one of its stages.
type Stage struct {
	Group []int // ranks that exchange with each other in it, this one among them, ascending
	// Before the stage a rank r of the group stands for Ranks ranks, of which First(r) is
	// the first.
	Ranks int
}

// First is the first of the ranks for which r stands before the stage.
func (s Stage) First(r int) int { return r - r%s.Ranks }

// Stages are those of rank in a butterfly, in their order; nil in other graphs.
func (g *Graph) Stages(rank int) (stages []Stage) {
	ranks := 1
	for _, degree := range g.degrees {
		s := Stage{Ranks: ranks}
		first := rank - rank/ranks%degree*ranks
		for i := range degree {
			s.Group = append(s.Group, first+i*ranks)
		}
		stages = append(stages, s)
		ranks *= degree
	}
	return stages
}

// InStages tells whether the graph is a butterfly.
func (g *Graph) InStages() bool { return g.degrees != nil }

// stagesText says what a rank of a butterfly sends, in each stage and in all.
func (g *Graph) stagesText() (lines []string) {
	sent := 0
	for i, s := range g.Stages(0) {
		others := len(s.Group) - 1
		sent += others
		lines = append(lines, "stage "+strconv.Itoa(i+1)+", {"+phrase(s.Group, "", " ")+"}: changes of "+
			count(s.Ranks, "rank")+" to "+count(others, "other"))
	}
	if sent > 0 {
		lines = append(lines, "bytes per rank and sync: "+strconv.Itoa(sent)+" times the vector; on graph all "+strconv.Itoa(g.size-1)+" times")
	}
	return lines
}
