package rendezvous

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// Try does with this process alone what ranks of a machine do with each other:
// it passes memory on over an abstract socket, maps it at both ends, and looks
// the other process up. The error says what is not permitted here, as in a sandbox
// that filters system calls.
func Try() error {
	if err := try(); err != nil {
		e := say.Of(err)
		e.What = "shared memory does not work here: " + e.What
		return &e
	}
	return nil
}

func try() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var name [16]byte
	_, _ = rand.Read(name[:]) // never fails
	job := hex.EncodeToString(name[:])
	l, err := net.ListenUnix("unix", address(job, 0))
	if err != nil {
		return err
	}
	mem.TrackSocket(l, true)
	defer func() { mem.TrackSocket(l, false); l.Close() }()
	here, err := dial(ctx, job, 0)
	if err != nil {
		return err
	}
	defer here.Close()
	accepted, err := l.AcceptUnix()
	if err != nil {
		return err
	}
	there, err := admit(accepted)
	if err != nil {
		return err
	}
	defer there.Close()
	if here.pid != os.Getpid() {
		return say.Errorf(nil, "this process has id %d for itself and %d for others", os.Getpid(), here.pid).Try(namespaces)
	}

	f, err := mem.NewFile("malt-trial", 1)
	if err != nil {
		return err
	}
	defer f.Close()
	own, err := f.Map(true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mem.Unmap(own)) }()
	own[0] = 1
	if err := errors.Join(f.Seal(), here.send([]byte("memory"), f.Fd())); err != nil {
		return err
	}
	_, fds, err := there.receive()
	if err != nil {
		return err
	}
	if len(fds) != 1 {
		closeAll(fds)
		return fmt.Errorf("%d descriptors have come, expected 1", len(fds))
	}
	received, err := mem.OpenFile(fds[0], 1)
	if err != nil {
		return err
	}
	defer received.Close()
	other, err := received.Map(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mem.Unmap(other)) }()
	if other[0] != 1 {
		return errors.New("other processes cannot read what one writes into memory")
	}

	started, err := mem.StartTime(os.Getpid())
	if err != nil {
		return err
	}
	p, err := mem.OpenProcess(os.Getpid(), started)
	if err == nil {
		p.Close()
	}
	return err
}

// advice adds what to do where the system does not permit what shared memory
// needs.
func advice(err error) error {
	var refused syscall.Errno
	if !errors.As(err, &refused) || errors.Is(err, rdma.ErrRankTaken) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return err
	}
	return say.Errorf(err, "%v", err).At("ranks of one machine can use TCP instead, if their store is host:port").
		Try("Start them with `malt run -H localhost:4` and MALT_TRANSPORT=tcp.")
}
