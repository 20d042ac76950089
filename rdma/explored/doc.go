// Package explored is a transport in the memory of one case of package explore:
// real boxes, with plain words for doorbells and states, so that the layers
// above can be run through every interleaving. For tests; it exists only under
// the build tag "explore".
package explored
