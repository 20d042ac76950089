// Package graphs says which rank may write to which. It holds pure functions
// over rank numbers: no I/O, no state, the same answer on every rank.
//
// A graph is made from its name and the number of ranks:
//
//	g, err := graphs.Parse("halton", 8)
//	if err == nil {
//		err = g.CheckConnected()
//	}
//	g.Receivers(0, 1) // [1 5 3]: the receivers of rank 0, the most useful first
//	g.Senders(0, 1)   // [7 3 5]: the senders of rank 0
//
// With N ranks and L = floor(log2 N), rank n sends to
//
//	all           every other rank
//	ring          n+1, as all sums here mod N
//	chord         n+N/2, n+N/4, …, n+1: L receivers
//	halton        n plus L terms of the van der Corput sequence times N, from
//	              the first that gives 1: n+1, n+N/2+1, n+N/4+1, …
//	halton-paper  n+N/2, n+N/4, n+3N/4, …: L terms, as MALT section 3.4 prints them
//	random:K      K ranks drawn at random, and K ranks send to n;
//	              random:K:SEED draws others (the default seed is 0)
//	hypercube     the ranks whose numbers differ from n in one bit; N a power of two
//	star          rank 0, and rank 0 to all others
//	butterfly:AxB the others of its groups: A ranks in the first stage, B in the second; their
//	              product is N. Without numbers these are the prime factors of N;
//	              butterfly:50MB/0.21: what Degrees finds for a rank's rows and their share
//	shards:K      the first K ranks, and these to all others; without a number all to all;
//	              shards:K/D: these to D others, from which the rest have it in trees
//	one-peer      one receiver of chord at each clock, in turn
//	lists:1,2/2/0 the listed receivers: rank 0 to 1 and 2, rank 1 to 2, rank 2 to 0
//
// All of them except hypercube, random and lists work for every N. A single rank has
// no neighbours.
//
// # Caveats
//
// Not every graph mixes. The sequence as MALT prints it, halton-paper, splits
// the ranks into groups that never exchange anything, for N = 8, 12, 16, 24 and
// more: with 8 ranks the offsets 4, 2, 6 join only ranks of equal parity.
// Parse makes such a graph all the same, so that it can be looked at;
// CheckConnected refuses it. Use halton, which is connected for every N.
//
// Not every graph suits gradients. Averaging models brings replicas together on
// any connected graph. Averaging gradients lets them drift apart where the
// averaging matrix has an eigenvalue with a negative real part
// (Measures.SmallestRealPart): halton has one at 4, 8 and 16 ranks, and training
// diverges there. Exchange gradients over all only.
//
// Not every connected graph mixes fast. Measures.SecondEigenvalue and
// Measures.Diameter show it: with 8 ranks chord and halton are equal; with 64 and
// more, chord mixes much faster at the same cost.
package graphs
