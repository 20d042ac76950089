package core

// CutBytes is where parts of an array begin: at a cache line of their own, and between
// elements. LineWords is how many words lie in a cache line.
const (
	CutBytes  = 64
	LineWords = CutBytes / 8
)
