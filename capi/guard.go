package main

/*
#include "malt.h"
#include "malt_internal.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"malt/internal/say"
)

// caught turns a panic into MALT_EINTERNAL. Every exported function defers it
// first, so that no defect of MALT unwinds into C frames, which would end the
// caller's process:
//
//	func maltGoX(…) (status C.malt_status) {
//		defer caught(&status)
func caught(status *C.malt_status) {
	if r := recover(); r != nil {
		*status = fail(&panicError{value: r, at: panicSite()})
	}
}

// fail leaves err for malt_errmsg and malt_error on the calling thread, and returns
// its code. nil is MALT_OK and leaves an earlier failure alone.
func fail(err error) C.malt_status {
	if err == nil {
		return C.MALT_OK
	}
	// The goroutine of a call from C is locked to the caller's thread, so the C
	// side finds the right thread's buffer.
	i := infoOf(err)
	if i.code == C.MALT_EEXPELLED {
		reportLast("expelled")
	}
	more := ""
	if i.Topic != "" {
		more = "More: malt explain " + i.Topic
	}
	s := strings.Join([]string{say.Lines("malt: "+i.What, i.Where, i.Do, more), i.Call, i.What, i.Where, i.Do, i.Topic, i.why}, "\x00")
	C.maltc_set_error(i.code, C.int32_t(i.rank), C.int32_t(i.death), (*C.char)(unsafe.Pointer(unsafe.StringData(s))), C.size_t(len(s)))
	return i.code
}

// panicError is a panic that was caught at the border to C.
type panicError struct {
	value any
	at    string
}

func (e *panicError) Error() string {
	return fmt.Sprintf("internal error, please report it: %v (%s)", e.value, e.at)
}

// panicSite names the innermost function of MALT that was running.
func panicSite() string {
	var pcs [32]uintptr
	// Skip Callers, panicSite and caught; what follows are the runtime's own
	// frames of the panic, then the function that panicked.
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s, %s:%d", f.Function, f.File, f.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}
