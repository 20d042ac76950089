package core

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"malt/internal/say"
	"malt/rdma"
)

// few bytes wait on a connection at any moment, or are sent again, since hosts tell each other that they live: no network
// is slow for that.
const few = 4 << 10

// slowed is what keeps a rank from being heard, as far as the transport knows.
type slowed struct {
	clause string // "" where nothing is known
	do     string // about it; "" where it is not what is waited for
	topic  string // of the guide on that
}

// connection is what keeps a rank from being heard.
func (m *Marks) connection(rank int) slowed {
	t, ok := m.t.(rdma.Connected)
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
	carried += fmt.Sprintf("%s are not acknowledged yet, %s were sent again", size(float64(c.Queued)), size(float64(c.Resent)))
	switch {
	case c.Stopped:
		return slowed{"; its process is stopped, by SIGSTOP or a debugger", fmt.Sprintf("Resume the process of rank %d (kill -CONT).", rank), "hangs"}
	case c.Address == "":
		return slowed{}
	case c.Large:
		return slowed{
			fmt.Sprintf("; on the way to %s small packets arrive, large ones do not: the path's MTU is smaller than that of this host's interface: %s", c.Address, carried),
			"Large packets get lost. Lower the MTU on both hosts (ip link set mtu); `malt doctor -H HOST,HOST` finds the right one.", "network",
		}
	case c.Full:
		return slowed{
			fmt.Sprintf("; its kernel's buffer at %s is full, since its process does not read: %s", c.Address, carried),
			fmt.Sprintf("Look at the process of rank %d: it is stopped, or gets no processor time.", rank), "network",
		}
	case c.Queued > few || c.Queued > 0 && (c.Resent > few || !m.mute(rank)):
		return slowed{
			fmt.Sprintf("; the connection with %s is active: %s", c.Address, carried),
			"The network is slow or loses packets: `malt doctor -H` measures it. Send less (every=, sparse=), or raise timeout=.", "network",
		}
	case m.mute(rank) && c.Ahead > 0:
		return slowed{
			fmt.Sprintf("; its host at %s answers, its process does not: packets on the way from there get lost, or it is stopped", c.Address),
			fmt.Sprintf("Do large packets arrive? `malt doctor -H HOST,HOST` tells. If they do, look at the process of rank %d.", rank), "network",
		}
	case m.mute(rank):
		return slowed{
			fmt.Sprintf("; its host at %s answers, its process does not: it is stopped, or gets no processor time", c.Address),
			fmt.Sprintf("Look at the process of rank %d: kill -CONT resumes it if it is stopped. Or large packets from there get lost: `malt doctor -H` tells.", rank), "network",
		}
	case c.Resent > 0:
		return slowed{clause: fmt.Sprintf("; the connection with %s is active: %s", c.Address, carried)}
	}
	return slowed{}
}

// whereabouts is a clause on what rank is doing, and where in its program: in a
// call there, or since it has come back from one.
func (m *Marks) whereabouts(rank int, nameOf func(id uint32) string) string {
	activity, id, clock, err := m.Doing(rank)
	if err != nil {
		return "gone"
	}
	object := nameOf(id)
	if object != "" {
		object = fmt.Sprintf(" %s at clock %d", object, clock)
	}
	call, place := ", ", m.Place(rank)
	doing := "computing"
	switch activity {
	case InGather:
		doing = "waiting in a gather of" + object
	case InScatter:
		doing = "waiting in a scatter of" + object
	case InCollective:
		doing = "waiting in a collective call"
	default:
		call = ", its last call: "
		if object != "" {
			doing += ", last used" + object
		}
	}
	if place == "" {
		return doing
	}
	return doing + call + place
}

// Describe lists ranks and where they are, for messages about waits; known is what keeps one
// of them, with the advice, where a connection shows that.
func (m *Marks) Describe(ranks []int, nameOf func(id uint32) string) (text string, known slowed) {
	shown := ranks[:min(len(ranks), 4)]
	parts := make([]string, len(shown))
	for i, r := range shown {
		c := m.connection(r)
		if known.do == "" {
			known = c
		}
		parts[i] = fmt.Sprintf("rank %d (%s%s)", r, m.whereabouts(r, nameOf), c.clause)
	}
	text = strings.Join(parts, ", ")
	if utf8.RuneCountInString(text) > say.Width-len("waited for ") {
		text = strings.Join(parts, ",\n")
	}
	if more := ranks[len(shown):]; len(more) > 0 {
		text += " and " + say.Ranks(more)
	}
	return text, known
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
