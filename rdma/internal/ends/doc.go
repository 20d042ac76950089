// Package ends keeps the objects that a transport has opened: ends of boxes, words
// and subs. It closes them with the transport, from any goroutine, and lets a
// transport open each box of another rank once at a time.
package ends
