// Package vote decides which hosts and ranks take part after a death or a cut: the rules of
// Paxos among hosts, as values without I/O.
package vote
