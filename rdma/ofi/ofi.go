//go:build cgo

package ofi

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra
// #include <stdlib.h>
// #include "ofi.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"malt/rdma/fabric"
	"malt/rdma/internal/mem"
)

var _ fabric.Carrier = (*carrier)(nil)

// refused are providers that cannot be used, and why.
var refused = map[string]string{
	"cxi":         "its writes do not tell the peer that they have arrived",
	"shm":         "it does not check keys",
	"udp;ofi_rxd": "it is no longer maintained",
	"net":         "it does not notice when a peer has died",
}

type carrier struct {
	o     *C.struct_maltc_ofi // nil once closed, which takes polling and waiting
	about fabric.About
	caps  fabric.Caps
	own   []byte

	devices []int // descriptors that were opened for it

	once    sync.Once // of Close
	waiting sync.RWMutex
	polling sync.Mutex
	found   [64]C.struct_maltc_ofi_event // polling

	mu      sync.Mutex
	peers   map[int]C.uint64_t // by their numbers
	ops     []*fabric.Op       // by slot; nil: free
	free    []uint32           // slots
	regions map[*region]bool   // that are open
	keys    uint64             // that were chosen here
	closing bool               // only Poll and Wait go on
}

// opening lets one Open in at a time: the environment is the process's.
var opening sync.Mutex

// Open opens the first endpoint of a provider of libfabric, for so many peers. path is the library;
// "": as the system finds it.
func Open(provider, path string, peers int) (fabric.Carrier, error) {
	if why := refused[provider]; why != "" { // opening shm would leave a file behind
		return nil, fmt.Errorf("libfabric's provider %s: %s", provider, why)
	}
	opening.Lock()
	defer opening.Unlock()
	if path == "" {
		path = library
	}
	cpath, cprovider := C.CString(path), C.CString(provider)
	defer C.free(unsafe.Pointer(cpath))
	defer C.free(unsafe.Pointer(cprovider))
	var failed *C.char
	var number C.int
	var text [512]C.char
	c := &carrier{peers: map[int]C.uint64_t{}, regions: map[*region]bool{}}
	c.tracked(func() {
		c.o = C.maltc_ofi_open(cpath, cprovider, C.uint32_t(peers), &failed, &number, &text[0], C.size_t(len(text)))
	})
	o := c.o
	if o == nil {
		if why := C.GoString(&text[0]); failed != nil {
			err := fmt.Errorf("libfabric's provider %s: %s: %s", provider, C.GoString(failed), why)
			return nil, c.short(number, connection*(peers-1), err)
		}
		return nil, fmt.Errorf("%w: %s", fabric.ErrNoLibrary, C.GoString(&text[0]))
	}
	c.own = C.GoBytes(unsafe.Pointer(&o.address[0]), C.int(o.address_bytes))
	c.about = fabric.About{Provider: C.GoString(o.info.fabric_attr.prov_name), Device: C.GoString(o.info.domain_attr.name), Library: fmt.Sprintf("%d.%d", o.library>>16, o.library&0xffff)}
	c.caps = fabric.Caps{MaxWrite: int(min(uint64(o.info.ep_attr.max_msg_size), 1<<62)), MaxRooms: int(o.events) / 2, Hardware: strings.HasPrefix(c.about.Provider, "verbs")}
	c.ops = make([]*fabric.Op, o.slots)
	for i := range c.ops {
		c.free = append(c.free, uint32(i))
	}
	if err := c.usable(); err != nil {
		return nil, errors.Join(fmt.Errorf("libfabric's provider %s: %w", c.about.Provider, err), c.Close())
	}
	return c, nil
}

// usable says why a provider that can be opened cannot be used.
func (c *carrier) usable() error {
	if why := refused[c.about.Provider]; why != "" { // where a shorter name was given
		return errors.New(why)
	}
	m, err := mem.NewPinned(os.Getpagesize())
	if err != nil {
		return err
	}
	defer m.Unmap()
	var keys [2]uint64
	for i := range keys {
		r, err := c.Register(m, fabric.Target)
		if err != nil {
			return err
		}
		_, keys[i] = r.Remote()
		if err := r.Close(); err != nil {
			return err
		}
	}
	if keys[0] == keys[1] {
		return errors.New("registrations are cached, so that a region cannot be closed: set FI_MR_CACHE_MAX_COUNT=0, and load MALT before other libraries that use libfabric")
	}
	return nil
}

func (c *carrier) About() fabric.About { return c.about }
func (c *carrier) Caps() fabric.Caps   { return c.caps }
func (c *carrier) Address() []byte     { return c.own }

// fail puts in words what libfabric answered.
func (c *carrier) fail(what string, r C.int) error {
	if r == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s: %s", c.about.Provider, what, C.GoString(C.maltc_ofi_error(c.o, r)))
}

// connection is about how many bytes ofi_rxm locks for its queues with a peer, at the first write: on rxe 1 MiB is
// too little for one, and 8 MiB are enough.
const connection = 4 << 20

// short is err, the number of which is r, or that more memory would have to be locked than may be: libfabric says
// then that there is no memory. c.mu is held.
func (c *carrier) short(r C.int, bytes int, err error) error {
	need := uint64(bytes + connection*max(1, len(c.peers)))
	for r := range c.regions {
		need += uint64(len(r.m.Bytes()))
	}
	var limit unix.Rlimit
	if r == -C.int(unix.ENOMEM) && unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil && limit.Cur < need {
		return &fabric.MemlockError{Limit: limit.Cur, Need: need}
	}
	return err
}

func (c *carrier) Connect(peer int, address []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return fabric.ErrClosed
	}
	if len(address) != len(c.own) {
		return fmt.Errorf("%s: an address of %d bytes: those here have %d", c.about.Provider, len(address), len(c.own))
	}
	var to C.uint64_t
	if err := c.fail("fi_av_insert", C.maltc_ofi_connect(c.o, unsafe.Pointer(&address[0]), &to)); err != nil {
		return err
	}
	c.peers[peer] = to
	return nil
}

type region struct {
	c            *carrier
	m            mem.Pinned
	mr           *C.struct_ofi_mr
	address, key C.uint64_t
}

func (c *carrier) Register(m mem.Pinned, a fabric.Access) (fabric.Region, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, fabric.ErrClosed
	}
	r := &region{c: c, m: m}
	c.keys++ // none comes twice, so that one of a region that was closed opens no other
	b := m.Bytes()
	e := C.maltc_ofi_register(c.o, unsafe.Pointer(&b[0]), C.size_t(len(b)), C.int(a), C.uint64_t(c.keys), &r.mr, &r.address, &r.key)
	if err := c.fail(fmt.Sprintf("registering %d bytes", len(b)), e); err != nil {
		return nil, c.short(e, len(b), err)
	}
	c.regions[r] = true
	return r, nil
}

func (r *region) Remote() (address, key uint64) { return uint64(r.address), uint64(r.key) }

func (r *region) Close() error {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return r.close()
}

// close is with mu.
func (r *region) close() error {
	if !r.c.regions[r] {
		return nil
	}
	delete(r.c.regions, r)
	return r.c.fail("closing a region", C.maltc_ofi_unregister(r.mr))
}

func (c *carrier) Write(op *fabric.Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, _ := op.From.(*region)
	peer, known := c.peers[op.Peer]
	switch {
	case c.closing:
		return fabric.ErrClosed
	case !known:
		return fmt.Errorf("%s: peer %d is not connected", c.about.Provider, op.Peer)
	case !c.regions[from]:
		return fmt.Errorf("%s: the memory to write from is not registered here", c.about.Provider)
	case op.At < 0 || op.Bytes < 1 || op.Bytes > c.caps.MaxWrite || op.Bytes > len(from.m.Bytes())-op.At:
		return fmt.Errorf("%s: a write of %d bytes from byte %d of %d; at most %d go at once", c.about.Provider, op.Bytes, op.At, len(from.m.Bytes()), c.caps.MaxWrite)
	case len(c.free) == 0:
		return fabric.ErrBusy
	}
	slot := c.free[len(c.free)-1]
	r := C.maltc_ofi_write(c.o, C.uint32_t(slot), unsafe.Pointer(&from.m.Bytes()[op.At]), C.size_t(op.Bytes), from.mr, peer, C.uint64_t(op.Address), C.uint64_t(op.Key), C.uint32_t(op.Number))
	if r == C.MALTC_OFI_BUSY {
		return fabric.ErrBusy
	} else if err := c.fail("fi_write", r); err != nil {
		return c.short(r, 0, err)
	}
	c.free = c.free[:len(c.free)-1]
	c.ops[slot] = op
	return nil
}

func (c *carrier) Poll(ev []fabric.Event) int {
	if !c.polling.TryLock() {
		return 0
	}
	defer c.polling.Unlock()
	if c.o == nil {
		return 0
	}
	return c.poll(ev)
}

// poll is with polling.
func (c *carrier) poll(ev []fabric.Event) int {
	n := int(C.maltc_ofi_poll(c.o, &c.found[0], C.int(min(len(ev), len(c.found)))))
	if n == 0 {
		return 0
	}
	c.mu.Lock() // a write whose completion is found here has its Op there
	defer c.mu.Unlock()
	for i, f := range c.found[:n] {
		ev[i] = fabric.Event{Number: uint32(f.number), Err: c.fail("completions", f.error)}
		if f.slot >= 0 {
			ev[i] = fabric.Event{Op: c.ops[f.slot], Err: c.fail("a write", f.error)}
			c.ops[f.slot] = nil
			c.free = append(c.free, uint32(f.slot))
		}
	}
	return n
}

func (c *carrier) Wait(d time.Duration) {
	c.waiting.RLock()
	defer c.waiting.RUnlock()
	if c.o != nil {
		C.maltc_ofi_wait(c.o, C.int((d+time.Millisecond-1)/time.Millisecond))
	}
}

// drained is for how long Close waits for writes in flight.
const drained = 200 * time.Millisecond

// Close closes regions before the endpoint: ofi_rxm crashes if an endpoint is closed while there are numbers
// to poll (libfabric 1.17), and no more arrive after that. Over tcp it crashes in the middle of a write
// that comes in, too. There the endpoint stays, as with writes that do not end; without polls it moves nothing.
func (c *carrier) Close() (err error) {
	c.once.Do(func() { err = c.close() })
	return err
}

func (c *carrier) close() error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	var ev [16]fabric.Event
	for end := time.Now().Add(drained); c.inFlight() && time.Now().Before(end); c.Wait(time.Millisecond) {
		c.Poll(ev[:])
	}
	_, _ = unix.Write(int(c.o.woken), []byte{7: 1}) // any number ends Wait
	c.waiting.Lock()
	defer c.waiting.Unlock()
	c.polling.Lock()
	defer c.polling.Unlock()
	var errs []error
	c.mu.Lock()
	for r := range c.regions {
		errs = append(errs, r.close())
	}
	c.mu.Unlock()
	for range 2 * c.caps.MaxRooms { // as many as are kept
		if c.poll(ev[:]) == 0 {
			break
		}
	}
	if c.caps.Hardware && !c.inFlight() {
		c.tracked(func() {
			if r := C.maltc_ofi_close(c.o); r != 0 {
				errs = append(errs, fmt.Errorf("%s: closing: libfabric's error %d", c.about.Provider, r))
			}
		})
	}
	c.o = nil
	return errors.Join(errs...)
}

func (c *carrier) inFlight() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.free) < len(c.ops)
}
