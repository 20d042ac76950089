package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"unsafe"

	"malt/rdma/auto"
)

// The fork handler in process.c closes in the child what MALT has open, and makes the
// memory that users hold the child's own. It reads the tables where Go has them:
// package variables, which neither move nor hold pointers, so C may keep their
// addresses.
func init() {
	u, used := auto.UserMappings()
	C.maltc_user_mappings((*C.struct_user_mapping)(unsafe.Pointer(&u[0])), (*C.size_t)(unsafe.Pointer(used)))
	d := auto.Descriptors()
	C.maltc_descriptors(unsafe.Pointer(&d[0]), C.size_t(len(d)))
}
