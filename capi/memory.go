package main

/*
#include "malt.h"
*/
import "C"

import "unsafe"

//export maltGoUnmap
func maltGoUnmap(data unsafe.Pointer) (status C.malt_status) {
	defer caught(&status)
	life.Lock()
	defer life.Unlock()
	worlds := former
	if w := world.Load(); w != nil {
		worlds = append(worlds[:len(worlds):len(worlds)], w)
	}
	var err error = badArgument("%p is not the memory of a vector or segment", data)
	for _, w := range worlds {
		if err = w.Unmap((*byte)(data)); code(err) != C.MALT_EINVAL {
			break
		}
	}
	return fail(err)
}
