package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"malt/internal/nearest"
	"malt/libmalt"
	"malt/libmalt/reduce"
	"malt/rdma/auto"
	"malt/rdma/fabric"
)

// doctor is what malt_inspect("doctor") tells. Its keys are part of the ABI:
// malt.h lists them.
type doctor struct {
	Version    string      `json:"version"`
	ABI        int         `json:"abi"`
	System     string      `json:"system"`
	Cores      cores       `json:"cores"`
	Memory     memoryState `json:"memory"`
	OpenFiles  openFiles   `json:"open_files"`
	Kernels    string      `json:"kernels"`
	Transports []transport `json:"transports"`
	Fabric     carrier     `json:"fabric"`
}

type cores struct {
	Online int `json:"online"` // that this process may run on
	Usable int `json:"usable"` // less where a control group allows less time
}

type memoryState struct {
	Total uint64 `json:"total"`
	Free  uint64 `json:"free"`  // what can still be used, within the tightest limit
	Limit string `json:"limit"` // what sets that limit
}

type openFiles struct {
	Used int    `json:"used"`
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

type transport struct {
	Name  string `json:"name"`
	Works bool   `json:"works"`
	Why   string `json:"why"` // not, if it does not
}

// The numbers of fabric are those of malt.h: neither array has a negative length.
var (
	_ [fabric.ErrFailed - C.MALT_RDMA_FAILED]struct{}
	_ [C.MALT_RDMA_OFF - fabric.ErrOff]struct{}
)

// carrier is the network that writes into the memory of other hosts.
type carrier struct {
	State    string `json:"state"` // "works", or a fabric.Why
	Wanted   string `json:"wanted"`
	Provider string `json:"provider"`
	Device   string `json:"device"`
	Library  string `json:"library"`
	Hardware bool   `json:"hardware"`
	Why      string `json:"why"`
}

//export maltGoInspect
func maltGoInspect(what C.maltc_text, p *C.char, capacity C.uint64_t, need *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	w := a.text(what, "what", maxNote)
	if a.err != nil {
		return fail(a.err)
	}
	found, err := inspect(w)
	if err == nil {
		err = putText(found, p, capacity, need)
	}
	return fail(err)
}

func inspect(what string) (string, error) {
	if what == "doctor" {
		b, err := json.Marshal(examine())
		return string(b), err
	}
	if what == "names" {
		names := libmalt.Names()
		names["transport"] = auto.Names()
		b, err := json.Marshal(names)
		return string(b), err
	}
	if words := strings.Fields(what); len(words) > 2 && words[0] == "meant" {
		return nearest.Word(words[1], words[2:]), nil
	}
	if words := strings.Fields(what); len(words) > 1 && words[0] == "shares" {
		return inShares(words[1:])
	}
	return "", badArgument("inspect %.40q: expected doctor, names, shares with bytes and the ranks of each host, "+
		"or meant with a word and the known words", what)
}

func inShares(words []string) (string, error) {
	numbers := make([]int, len(words))
	for i, word := range words {
		most := 1 << 15 // ranks
		if i == 0 {
			most = 1 << 44 // bytes
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > most {
			return "", badArgument("inspect shares: %.40q: expected a number from 1 to %d", word, most)
		}
		numbers[i] = n
	}
	return strconv.FormatBool(libmalt.InShares(numbers[0], numbers[1:])), nil
}

func examine() doctor {
	d := doctor{
		Version: C.GoString(C.malt_version()),
		ABI:     C.MALT_ABI_VERSION,
		System:  system(),
		Cores:   cores{Online: runtime.NumCPU(), Usable: runtime.GOMAXPROCS(0)},
		Kernels: reduce.Path(),
	}
	d.Memory.Free, d.Memory.Limit = auto.FreeMemory()
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		d.Memory.Total = uint64(info.Totalram) * uint64(info.Unit)
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		d.OpenFiles.Soft, d.OpenFiles.Hard = limit.Cur, limit.Max
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		d.OpenFiles.Used = len(open) - 1 // less the one for reading this
	}
	for _, name := range auto.Names() {
		t := transport{Name: name, Works: true}
		if err := try(name); err != nil {
			t.Works, t.Why = false, err.Error()
		}
		d.Transports = append(d.Transports, t)
	}
	d.Fabric = tryFabric()
	return d
}

// tryFabric has the carrier that MALT_FABRIC names write to itself.
func tryFabric() carrier {
	f := carrier{Wanted: getenv("MALT_FABRIC"), State: "works"}
	c, err := auto.Fabric(f.Wanted, getenv("MALT_LIBFABRIC"), 1)
	if err == nil {
		a := c.About()
		f.Provider, f.Device, f.Library, f.Hardware = a.Provider, a.Device, a.Library, c.Caps().Hardware
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err = fabric.Probe(ctx, c)
	}
	if err == nil {
		return f
	}
	f.State, f.Why = fabric.WhyOf(err).Error(), err.Error()
	return f
}

// try joins a job of one rank over the transport, and leaves it.
func try(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var id [16]byte
	rand.Read(id[:]) // never fails
	c := libmalt.Config{Size: 1, Transport: name, Token: hex.EncodeToString(id[:])}
	c.Store = "local:" + c.Token
	if name == "tcp" {
		var err error
		if c.Store, c.StoreFD, err = loopback(); err != nil {
			return err
		}
	}
	w, err := libmalt.Join(ctx, c)
	if err != nil {
		return err
	}
	return w.Close()
}

// loopback is a store that nobody else can reach, and the socket that listens
// there.
func loopback() (store string, fds []int, err error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", nil, err
	}
	defer l.Close()
	raw, err := l.SyscallConn()
	if err != nil {
		return "", nil, err
	}
	fd := -1
	if cerr := raw.Control(func(s uintptr) { fd, err = syscall.Dup(int(s)) }); cerr != nil {
		err = cerr
	}
	return l.Addr().String(), []int{fd}, err
}

// system is the kernel's name and release and the architecture.
func system() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS + " " + runtime.GOARCH
	}
	return runtime.GOOS + " " + strings.TrimSpace(string(b)) + " " + runtime.GOARCH
}
