package libmalt

import (
	"fmt"
	"time"

	"malt/rdma"
)

// connection is a clause on what keeps a rank from being heard, as far as the
// transport knows; "" where that is nothing.
func (w *World) connection(rank int) string {
	t, ok := w.t.(rdma.Connected)
	if !ok {
		return ""
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
		return "; its process is stopped: by SIGSTOP, or by a debugger"
	case c.Address == "":
		return ""
	case c.Large:
		return fmt.Sprintf("; on the way to %s small packets arrive, large ones do not: the path's MTU is smaller than that of this host's interface (ip link set mtu lowers it): %s", c.Address, carried)
	case c.Full:
		return fmt.Sprintf("; its kernel at %s has no more room: its process takes nothing of what is sent to it: %s", c.Address, carried)
	case c.Queued > 0 || c.Resent > 0:
		return fmt.Sprintf("; the connection with %s is at work: %s", c.Address, carried)
	}
	return ""
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
