package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"unsafe"

	"malt/rdma/auto"
)

// The fork handler in process.c closes in the child what MALT has open. It reads
// the table of descriptors where Go has it: a package variable, which neither
// moves nor holds pointers, so C may keep its address.
func init() {
	d := auto.Descriptors()
	C.maltc_descriptors(unsafe.Pointer(&d[0]), C.size_t(len(d)))
}
