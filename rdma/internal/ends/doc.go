// Package ends is what transports do alike with what they have opened: ends of
// boxes, words and subs. They close it when they are closed themselves, by
// whatever goroutine, and take a box of another rank once at a time.
package ends
