package rendezvous

import (
	"crypto/subtle"
	"fmt"

	"malt/internal/say"
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
	m, err := decode[request](message)
	if err == nil {
		err = h.permit(&m, c.pid)
	}
	if err != nil {
		_ = c.send(encode(refusal(err)))
		return
	}
	if m.Kind == wantPage {
		_ = c.send(encode(&reply{Sizes: []int{h.pageFile.Size()}}), h.pageFile.Fd())
		return
	}
	if m.Kind == wantBack {
		h.answerBack(c, int(m.Rank))
		return
	}
	h.answerRegion(c, string(m.Name), int(m.Rank))
}

// permit says why a request is refused, or nil.
func (h *Host) permit(m *request, pid int) error {
	no := func(format string, args ...any) *say.Error { return say.Errorf(nil, format, args...) }
	switch {
	case m.Version != protocol:
		return no("it speaks version %d of the protocol, not %d", protocol, m.Version).Try("All ranks must use the same version of MALT.")
	case subtle.ConstantTimeCompare(m.Token, []byte(h.cfg.Token)) != 1:
		return no("the token is wrong").Try("All ranks of a job must have the same secret (MALT_TOKEN).")
	case m.Size != uint32(h.cfg.Size):
		return no("it was started with size %d, not %d", h.cfg.Size, m.Size).Try("All ranks need the same number of ranks (MALT_SIZE, malt run -n).")
	case m.Rank >= m.Size:
		return no("rank %d does not exist among %d ranks", m.Rank, m.Size).Try("Ranks are numbered from 0 (MALT_RANK).")
	case !h.member(int(m.Rank)):
		return no("it sees rank %d on another machine", m.Rank)
	case m.Pid != uint32(pid):
		return no("it sees process %d of rank %d as %d", m.Pid, m.Rank, pid).Try(namespaces)
	case m.Kind == wantPage && h.pageFile == nil:
		return no("it does not have the control page").At("rank %d has it", h.members[0])
	case m.Kind == wantRegion && h.page.pid(int(m.Rank)).Load() != uint64(pid):
		return no("rank %d is process %d, not %d", m.Rank, h.page.pid(int(m.Rank)).Load(), pid)
	case m.Kind != wantPage && m.Kind != wantRegion && m.Kind != wantBack:
		return no("it does not know requests of kind %d", m.Kind)
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
		a, changed := h.regions.claim(name, reader)
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
		h.regions.endClaim(a, reader, <-confirmed && ok)
		return
	}
}

func (h *Host) sendRegion(c *conn, a *Announcement) error {
	m := reply{Text: a.Text, Readers: a.Readers}
	fds := make([]int, len(a.Files))
	for i, f := range a.Files {
		m.Sizes = append(m.Sizes, f.Size())
		fds[i] = f.Fd()
	}
	return c.send(encode(&m), fds...)
}

// files takes over what came with a reply.
func (m *reply) files(fds []int) (files []*mem.File, err error) {
	if len(fds) != len(m.Sizes) {
		closeAll(fds)
		return nil, fmt.Errorf("%w: %d descriptors for %d files", errMessage, len(fds), len(m.Sizes))
	}
	for i, fd := range fds {
		f, err := mem.OpenFile(fd, m.Sizes[i])
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
