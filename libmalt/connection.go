package libmalt

import (
	"context"
	"fmt"
	"slices"
	"time"

	"malt/rdma"
)

// slowed is what keeps a rank from being heard, as far as the transport knows.
type slowed struct {
	clause string // "" where nothing is known
	do     string // about it; "" where it is not what is waited for
}

// connection is what keeps a rank from being heard.
func (w *World) connection(rank int) slowed {
	t, ok := w.t.(rdma.Connected)
	if !ok {
		return slowed{}
	}
	c := t.Connection(rank)
	carried := ""
	if c.Over > 0 {
		seconds := c.Over.Seconds()
		carried = fmt.Sprintf("in the last %v it has acknowledged %s (%s/s) and sent %s; ",
			c.Over.Round(time.Second), size(float64(c.Acked)), size(float64(c.Acked)/seconds), size(float64(c.Heard)))
	}
	carried += fmt.Sprintf("%s wait to be acknowledged, %s were sent again", size(float64(c.Queued)), size(float64(c.Resent)))
	switch {
	case c.Stopped:
		return slowed{"; its process is stopped: by SIGSTOP, or by a debugger", fmt.Sprintf("Let the process of rank %d go on (kill -CONT).", rank)}
	case c.Address == "":
		return slowed{}
	case c.Large:
		return slowed{
			fmt.Sprintf("; on the way to %s small packets arrive, large ones do not: the path's MTU is smaller than that of this host's interface: %s", c.Address, carried),
			"Lower the MTU on both hosts (ip link set mtu). `malt doctor -H` with their names finds the path's MTU.",
		}
	case c.Full:
		return slowed{
			fmt.Sprintf("; its kernel at %s has no more room: its process takes nothing of what is sent to it: %s", c.Address, carried),
			fmt.Sprintf("Look at the process of rank %d: it is stopped, or has no processor time.", rank),
		}
	case c.Queued > 0:
		return slowed{
			fmt.Sprintf("; the connection with %s is at work: %s", c.Address, carried),
			"The network is slow or loses packets: `malt doctor -H` measures it. Send less (every=, sparse=), or raise timeout=.",
		}
	case !w.marks.Heard(rank):
		return slowed{
			fmt.Sprintf("; its host at %s answers, its process does not: it is stopped, or has no processor time", c.Address),
			fmt.Sprintf("Look at the process of rank %d. If it is stopped, let it go on (kill -CONT).", rank),
		}
	case c.Resent > 0:
		return slowed{clause: fmt.Sprintf("; the connection with %s is at work: %s", c.Address, carried)}
	}
	return slowed{}
}

// greet asks the processes of ranks on other hosts for an answer, and waits for it a
// moment. Their kernels acknowledge what is sent to them whatever a process does.
func (w *World) greet(ranks []int) {
	if _, ok := w.t.(rdma.Connected); !ok {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	w.marks.Set(markGreeting, w.greetings.Add(1))
	_ = w.t.Wait(ctx, func() bool { // without an answer: connection says so
		return !slices.ContainsFunc(ranks, func(r int) bool { return !w.marks.Heard(r) })
	})
}

// waitFor is the wait of a call for ranks. do and more are a guess about the program; the
// state of a connection gives better advice where it is known.
func (w *World) waitFor(call string, ranks []int, do, more string) wait {
	whom, known := w.describe(ranks)
	if known != "" {
		do, more = known, "network"
	}
	return wait{call, whom, do, more}
}

// size is so many bytes in the largest unit that fits.
func size(bytes float64) string {
	for _, unit := range []string{"bytes", "KB", "MB"} {
		if bytes < 1000 {
			return fmt.Sprintf("%.3g %s", bytes, unit)
		}
		bytes /= 1000
	}
	return fmt.Sprintf("%.3g GB", bytes)
}
