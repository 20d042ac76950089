package main

/*
#include <stdlib.h>
*/
import "C"

import (
	"unsafe"

	"malt/libmalt"
)

// getenv reads the environment as C has it now. Go's own copy is from when the
// library was loaded; the program may have changed it since.
func getenv(name string) string {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return C.GoString(C.getenv(n))
}

// hideFromChildren replaces what made this process a rank, so that a program
// which the rank starts is a job of its own instead of a second copy of the
// rank. MALT_TIMEOUT and the like, which say how rather than who, stay.
func hideFromChildren(w *libmalt.World) {
	who := []struct{ name, value string }{
		{"MALT_RANK", "0"}, {"MALT_SIZE", "1"}, {"MALT_STORE", ""}, {"MALT_STORE_FD", ""}, {"MALT_TOKEN", ""}, {"MALT_TOGETHER", ""}, {"MALT_WITNESSES", ""}, {"MALT_RESTART", ""},
	}
	told := w.Size() > 1
	for _, v := range who {
		told = told || getenv(v.name) != ""
	}
	if !told {
		return // nobody made it one: leave the environment as it is
	}
	for _, v := range who {
		name, value := C.CString(v.name), C.CString(v.value)
		if v.value == "" {
			C.unsetenv(name)
		} else {
			C.setenv(name, value, 1)
		}
		C.free(unsafe.Pointer(name))
		C.free(unsafe.Pointer(value))
	}
}
