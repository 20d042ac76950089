package rendezvous

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"malt/internal/say"
	"malt/rdma/internal/mem"
)

// address is the abstract socket of a rank: a name in no file system, which the
// kernel frees with the last descriptor.
func address(job string, rank int) *net.UnixAddr {
	return &net.UnixAddr{Name: fmt.Sprintf("@malt-%s-%d", job, rank), Net: "unix"}
}

// conn is a connection with a process of the same user. Its descriptor is known
// to the fork handler.
type conn struct {
	*net.UnixConn
	fd   int
	pid  int // of the peer, by the kernel's word, in our namespace
	once sync.Once
}

// errStranger: the process at the other end belongs to another user.
var errStranger = errors.New("process of another user")

// errFull: waiting would not help, since it is our own descriptors that are in
// the way.
var errFull = say.Errorf(syscall.EMFILE, "this process has too many open files").Try("Raise the limit (ulimit -n), or close files.")

// admit asks the kernel who the peer is and closes c unless it has our user id.
func admit(c *net.UnixConn) (*conn, error) {
	var cred *syscall.Ucred
	admitted := &conn{UnixConn: c, fd: -1}
	raw, err := c.SyscallConn()
	if err == nil {
		cerr := raw.Control(func(fd uintptr) {
			admitted.fd = int(fd)
			cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		})
		err = errors.Join(err, cerr)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("asking who is connected: %w", err)
	}
	if cred.Uid != uint32(os.Geteuid()) {
		c.Close()
		return nil, fmt.Errorf("%w: process %d has user id %d, expected %d", errStranger, cred.Pid, cred.Uid, os.Geteuid())
	}
	admitted.pid = int(cred.Pid)
	mem.Track(admitted.fd)
	return admitted, nil
}

// Close closes the connection, once.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		mem.Untrack(c.fd)
		err = c.UnixConn.Close()
	})
	return err
}

// noDeadline takes a deadline back.
var noDeadline time.Time

// interruptible makes reads and writes of c end when ctx does. The caller calls
// stop when it is done with them.
func (c *conn) interruptible(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

// dial connects to a rank.
func dial(ctx context.Context, job string, rank int) (*conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", address(job, rank).Name)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return nil, errFull
	}
	if err != nil {
		return nil, err
	}
	return admit(c.(*net.UnixConn))
}

// send writes one message with descriptors.
func (c *conn) send(message []byte, fds ...int) error {
	if len(message) > maxMessage || len(fds) > maxFiles {
		return fmt.Errorf("message of %d bytes with %d descriptors; at most %d with %d", len(message), len(fds), maxMessage, maxFiles)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(message)))
	b = append(b, message...)
	var rights []byte
	if len(fds) > 0 {
		rights = syscall.UnixRights(fds...)
	}
	n, _, err := c.WriteMsgUnix(b, rights, nil)
	if err == nil && n < len(b) {
		_, err = c.Write(b[n:])
	}
	return err
}

// receive reads one message and the descriptors that came with it, all of them
// close-on-exec. On failure none are left open.
func (c *conn) receive() (message []byte, fds []int, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
			fds = nil
		}
	}()
	head := make([]byte, 4)
	room := make([]byte, syscall.CmsgSpace(4*maxFiles))
	n, roomN, flags, _, err := c.ReadMsgUnix(head, room)
	if err != nil {
		return nil, nil, err
	}
	if n == 0 {
		return nil, nil, io.EOF
	}
	fds, err = descriptorsOf(room[:roomN])
	if err != nil {
		return nil, fds, err
	}
	if flags&syscall.MSG_CTRUNC != 0 {
		return nil, fds, errFull
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return nil, fds, err
	}
	length := binary.LittleEndian.Uint32(head)
	if length > maxMessage {
		return nil, fds, fmt.Errorf("%w: of %d bytes, at most %d", errMessage, length, maxMessage)
	}
	message = make([]byte, length)
	_, err = io.ReadFull(c, message)
	return message, fds, err
}

// descriptorsOf takes received descriptors out of control messages.
func descriptorsOf(control []byte) (fds []int, err error) {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("control message: %w", err)
	}
	for i := range messages {
		some, err := syscall.ParseUnixRights(&messages[i])
		if err == nil {
			fds = append(fds, some...)
		}
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		syscall.Close(fd)
	}
}
