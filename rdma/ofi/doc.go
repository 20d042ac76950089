// Package ofi is a fabric.Carrier by libfabric, which it loads when it is opened.
//
//	c, err := ofi.Open("verbs;ofi_rxm", "", 8)
//
// # Caveats
//
// Open changes the environment for a moment, and puts back the handlers of signals that libraries
// have set: nothing else does either meanwhile. A library stays loaded.
//
// Providers that no device is behind, such as tcp;ofi_rxm, move bytes only while both ends poll.
package ofi

// library is what Open loads unless it is told otherwise: the name of all versions since 1.0.
const library = "libfabric.so.1"
