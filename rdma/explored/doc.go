// Package explored is a transport in the memory of one case of package explore. It
// has real boxes, with plain words for doorbells and states, so that tests can run
// the layers above through every interleaving. It exists only under the build tag
// "explore".
package explored
