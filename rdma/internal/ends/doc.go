// Package ends has what a transport has opened: ends of boxes, words and subs. It closes
// them with the transport, from any goroutine, and lets a transport open each box of
// another rank once at a time. Words are here for all transports whose ranks share memory.
package ends
