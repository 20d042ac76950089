package graphs_test

import (
	"errors"
	"fmt"

	"malt/graphs"
)

func Example() {
	g, err := graphs.Parse("halton", 8)
	if err == nil {
		err = g.CheckConnected()
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Receivers(0, 1))
	fmt.Println(g.Senders(0, 1))
	// Output:
	// [1 5 3]
	// [7 3 5]
}

func ExampleParse_unknown() {
	_, err := graphs.Parse("haltn", 8)
	fmt.Println(err)
	// Output:
	// graph "haltn" is not known
	// it is one of all, ring, chord, halton, halton-paper, random, hypercube, star, butterfly, shards, one-peer, lists
	// Did you mean "halton"?
}

func ExampleFromLists() {
	g, err := graphs.FromLists([][]int{{1, 2}, {2}, {0}})
	fmt.Println(g, err)
	fmt.Println(g.Senders(2, 1))
	// Output:
	// lists:1,2/2/0 <nil>
	// [0 1]
}

// The sequence that MALT prints splits 8 ranks by parity.
func ExampleGraph_CheckConnected() {
	g, _ := graphs.Parse("halton-paper", 8)
	err := g.CheckConnected()
	var split *graphs.DisconnectedError
	if errors.As(err, &split) {
		fmt.Println(split.Groups)
	}
	fmt.Println(err)
	// Output:
	// [[0 2 4 6] [1 3 5 7]]
	// graph halton-paper of 8 ranks is not strongly connected, so the replicas would drift apart
	// it splits into 2 groups that exchange nothing, {0 2 4 6} {1 3 5 7}
	// Use halton, which always is, or accept it with allow_disconnected.
}

// The same number of updates, and very different mixing.
func ExampleGraph_Measure() {
	for _, spec := range []string{"ring", "halton", "chord", "random:6", "one-peer", "all"} {
		g, _ := graphs.Parse(spec, 64)
		m, _ := g.Measure()
		fmt.Printf("%-8s %2d per rank, %2d hops, second eigenvalue %.3f, smallest real part %+.3f\n",
			g, m.DegreeMax, m.Diameter, m.SecondEigenvalue, m.SmallestRealPart)
	}
	// Output:
	// ring      1 per rank, 63 hops, second eigenvalue 0.999, smallest real part +0.000
	// halton    6 per rank,  9 hops, second eigenvalue 0.963, smallest real part -0.714
	// chord     6 per rank,  6 hops, second eigenvalue 0.714, smallest real part -0.302
	// random:6  6 per rank,  4 hops, second eigenvalue 0.447, smallest real part -0.177
	// one-peer  1 per rank,  6 hops, second eigenvalue 0.000, smallest real part +0.000
	// all      63 per rank,  1 hops, second eigenvalue 0.000, smallest real part +0.000
}

func ExampleGraph_Receivers_onePeer() {
	g, _ := graphs.Parse("one-peer", 8)
	for clock := range uint64(4) {
		fmt.Println(clock+1, g.Receivers(0, clock+1))
	}
	fmt.Println("ever", g.AllReceivers(0))
	// Output:
	// 1 [4]
	// 2 [2]
	// 3 [1]
	// 4 [4]
	// ever [4 2 1]
}

func ExampleGraph_Text() {
	g, _ := graphs.Parse("halton", 6)
	fmt.Print(g.Text())
	// Output:
	// halton, 6 ranks
	// 12 edges, 2 receivers per rank, at most 3 hops
	// second eigenvalue 0.577 (0 mixes at once, 1 never)
	// smallest real part 0.000
	// rank n sends to n+1, n+4 (mod 6)
	//
	//      to  0 1 2 3 4 5
	// from  0  \ ● · · ● ·   1 4
	//       1  · \ ● · · ●   2 5
	//       2  ● · \ ● · ·   3 0
	//       3  · ● · \ ● ·   4 1
	//       4  · · ● · \ ●   5 2
	//       5  ● · · ● · \   0 3
}

func ExampleGraph_DOT() {
	g, _ := graphs.Parse("star", 3)
	fmt.Print(g.DOT())
	// Output:
	// digraph {
	// 	layout=circo; label="star, 3 ranks\n4 edges, 1 to 2 receivers per rank, at most 2 hops\nsecond eigenvalue 0.500 (0 mixes at once, 1 never)\nsmallest real part -0.167 (below 0: exchange models, not gradients)";
	// 	node [shape=circle];
	// 	0;
	// 	1;
	// 	2;
	// 	0 -> 1;
	// 	0 -> 2;
	// 	1 -> 0;
	// 	2 -> 0;
	// }
}
