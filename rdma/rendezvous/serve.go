package rendezvous

import (
	"crypto/subtle"
	"fmt"

	"malt/rdma/internal/mem"
)

// serve answers other ranks until the Host is closed. Each connection has a
// goroutine of its own, so that a client that is stopped in the middle holds up
// nobody.
func (h *Host) serve() {
	for wait := backoff(0); ; {
		c, err := h.listen.AcceptUnix()
		switch {
		case err == nil:
			wait = 0
			h.serving.Go(func() {
				if a, err := admit(c); err == nil {
					h.answer(a)
				}
			})
		case h.ctx.Err() != nil:
			return
		default: // out of descriptors, perhaps for a while
			wait = wait.next()
			_ = wait.sleep(h.ctx)
		}
	}
}

// answer serves one connection.
func (h *Host) answer(c *conn) {
	defer c.Close()
	defer c.interruptible(h.ctx)()
	message, fds, err := c.receive()
	closeAll(fds)
	if err != nil {
		return
	}
	m, err := decodeRequest(message)
	if err == nil {
		err = h.permit(&m, c.pid)
	}
	if err != nil {
		_ = c.send((&reply{refused: err.Error()}).encode())
		return
	}
	if m.kind == wantPage {
		page := reply{sizes: []uint64{uint64(h.pageFile.Size())}}
		_ = c.send(page.encode(), h.pageFile.Fd())
		return
	}
	h.answerRegion(c, m.name, int(m.rank))
}

// permit says why a request is refused, or nil.
func (h *Host) permit(m *request, pid int) error {
	switch {
	case m.version != protocol:
		return fmt.Errorf("it speaks version %d of the protocol, not %d; all ranks must use the same version of MALT", protocol, m.version)
	case subtle.ConstantTimeCompare([]byte(m.token), []byte(h.cfg.Token)) != 1:
		return fmt.Errorf("the token is wrong; all ranks of a job must have the same MALT_TOKEN")
	case m.size != uint32(h.cfg.Size):
		return fmt.Errorf("it was started with size %d, not %d", h.cfg.Size, m.size)
	case m.rank >= m.size:
		return fmt.Errorf("there is no rank %d among %d", m.rank, m.size)
	case !h.member(int(m.rank)):
		return fmt.Errorf("rank %d is on another machine, to it", m.rank)
	case m.pid != uint32(pid):
		return fmt.Errorf("process %d of rank %d is %d to it; %s", m.pid, m.rank, pid, namespaces)
	case m.kind == wantPage && h.pageFile == nil:
		return fmt.Errorf("it does not have the control page; rank %d has", h.members[0])
	case m.kind == wantRegion && h.page.pid(int(m.rank)).Load() != uint64(pid):
		return fmt.Errorf("rank %d is process %d, not %d", m.rank, h.page.pid(int(m.rank)).Load(), pid)
	case m.kind != wantPage && m.kind != wantRegion:
		return fmt.Errorf("it does not know requests of kind %d", m.kind)
	}
	return nil
}

// answerRegion waits until name is announced for the reader, sends it, and waits
// for the reader to confirm. It ends early with the connection or the Host.
func (h *Host) answerRegion(c *conn, name string, reader int) {
	confirmed := make(chan bool, 1)
	h.serving.Go(func() { // ends when c is closed
		var b [1]byte
		n, _ := c.Read(b[:])
		confirmed <- n == 1
	})
	for {
		a, changed := h.regions.take(name, reader)
		if a == nil {
			select {
			case <-changed:
				continue
			case <-confirmed: // before there is anything to confirm: gone
			case <-h.ctx.Done():
			}
			return
		}
		ok := h.sendRegion(c, a) == nil
		if !ok {
			c.Close()
		}
		h.regions.settle(a, reader, <-confirmed && ok)
		return
	}
}

func (h *Host) sendRegion(c *conn, a *Announcement) error {
	m := reply{text: a.Text}
	for _, r := range a.Readers {
		m.readers = append(m.readers, uint32(r))
	}
	fds := make([]int, len(a.Files))
	for i, f := range a.Files {
		m.sizes = append(m.sizes, uint64(f.Size()))
		fds[i] = f.Fd()
	}
	return c.send(m.encode(), fds...)
}

// files takes over what came with a reply.
func (m *reply) files(fds []int) (files []*mem.File, err error) {
	if len(fds) != len(m.sizes) {
		closeAll(fds)
		return nil, fmt.Errorf("%w: %d descriptors for %d files", errMessage, len(fds), len(m.sizes))
	}
	for i, fd := range fds {
		f, err := mem.OpenFile(fd, int(m.sizes[i]))
		if err != nil {
			closeAll(fds[i+1:])
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
