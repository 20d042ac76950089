package main

/*
#include "malt.h"
*/
import "C"

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"

	"malt/internal/say"
	"malt/libmalt"
	"malt/rdma"
)

// Errors of this package itself.
var (
	errArgument = errors.New("argument")        // a C argument that libmalt never sees
	errNotInit  = errors.New("not initialised") // malt_init first, or twice
)

// badArgument is MALT_EINVAL with a sentence.
func badArgument(format string, args ...any) *say.Error {
	return say.Errorf(errArgument, format, args...)
}

// kinds orders the sentinels: the first that an error is decides. What names the
// cause stands before what it led to, so that a wait which failed because its
// rank died is MALT_EPEER although other things may be said of it, too.
var kinds = []struct {
	is   error
	code C.malt_status
}{
	{errArgument, C.MALT_EINVAL},
	{errNotInit, C.MALT_EINIT},
	{libmalt.ErrInvalid, C.MALT_EINVAL},
	{rdma.ErrConfig, C.MALT_EINVAL},
	{rdma.ErrExpelled, C.MALT_EEXPELLED},
	{libmalt.ErrMismatch, C.MALT_EMISMATCH},
	{libmalt.ErrNoMemory, C.MALT_ENOMEM},
	{libmalt.ErrBusy, C.MALT_EBUSY},
	{libmalt.ErrState, C.MALT_ESTATE},
	{libmalt.ErrRankTaken, C.MALT_ESTATE},
	{libmalt.ErrCancelled, C.MALT_ECANCELLED},
	{context.Canceled, C.MALT_ECANCELLED},
	{libmalt.ErrLeft, C.MALT_ELEFT},
	{rdma.ErrLeft, C.MALT_ELEFT},
	{libmalt.ErrUnsupported, C.MALT_EUNSUPPORTED},
	{libmalt.ErrTimeout, C.MALT_ETIMEOUT},
	{context.DeadlineExceeded, C.MALT_ETIMEOUT},
	{libmalt.ErrClosed, C.MALT_EHANDLE},
}

// info is an error as malt_error gives it.
type info struct {
	say.Error
	code  C.malt_status
	rank  int // -1: none
	death rdma.Death
	why   string
}

// printable is a sentence for a terminal: parts of it may be other ranks' words, whose
// control characters, escapes and changes of direction would have an effect there.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func infoOf(err error) info {
	i := info{code: code(err), rank: -1}
	var dead *rdma.PeerError
	if i.Error = say.Of(err); i.code == C.MALT_EPEER && errors.As(err, &dead) {
		i.rank, i.death, i.why = dead.Rank, dead.Kind, dead.Err.Error()
		i.Error = *ofDeath(dead)
	}
	for _, text := range []*string{&i.Call, &i.What, &i.Where, &i.Do, &i.why} {
		*text = printable(*text)
	}
	return i
}

// ofDeath is what a person reads of a death.
func ofDeath(dead *rdma.PeerError) *say.Error {
	e := say.Errorf(dead, "rank %d is dead: %v", dead.Rank, dead.Err).In(dead.Op).More("dead").
		Try("Read the last output of rank %d: it has the cause.", dead.Rank)
	if dead.Op != "" {
		e.At("this rank was in %s", dead.Op)
	}
	if dead.Kind == rdma.Unreachable {
		e.Try("Check that its host is up and that no firewall is between the two. MALT_INTERFACE chooses another network.").More("firewall")
	}
	return e
}

// code is the one place that maps errors to the codes of malt.h. What it does
// not know is a defect: every error that can be met has a code.
func code(err error) C.malt_status {
	var (
		peer     *rdma.PeerError
		mismatch *rdma.MismatchError
		handle   *handleError
		caught   *panicError
		path     *fs.PathError
		call     *os.SyscallError
		errno    syscall.Errno
	)
	switch {
	case err == nil:
		return C.MALT_OK
	case errors.As(err, &caught):
		return C.MALT_EINTERNAL
	case errors.As(err, &peer):
		return C.MALT_EPEER
	case errors.As(err, &mismatch):
		return C.MALT_EMISMATCH
	case errors.As(err, &handle):
		return C.MALT_EHANDLE
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			return k.code
		}
	}
	if errors.As(err, &errno) || errors.As(err, &call) || errors.As(err, &path) {
		return C.MALT_EIO
	}
	return C.MALT_EINTERNAL
}
