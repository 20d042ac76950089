package libmalt

import (
	"slices"
	"strings"

	"malt/graphs"
	"malt/internal/say"
	"malt/libmalt/consistency"
	"malt/libmalt/reduce"
)

// parseOptions reads "key=value key=value …", the one grammar of C, Python,
// command line and environment, and hands each pair to its setter.
func parseOptions(options string, known []string, set func(key, value string) error) error {
	seen := map[string]bool{}
	for _, pair := range strings.Fields(options) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return say.Errorf(ErrInvalid, "option %.40q: key=value is expected, such as %s=…", pair, known[0])
		}
		if seen[key] {
			return say.Errorf(ErrInvalid, "option %.40s is given twice", key)
		}
		seen[key] = true
		if !slices.Contains(known, key) {
			return say.Unknown(ErrInvalid, "option", key, known...)
		}
		if value == "" {
			return say.Errorf(ErrInvalid, "option %s= has no value", key)
		}
		if err := set(key, value); err != nil {
			return err
		}
	}
	return nil
}

func parseBool(key, value string) (bool, error) {
	switch value {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, say.Unknown(ErrInvalid, key, value, "true", "false")
}

// mode is how an object exchanges updates: its graph, consistency and fold.
type mode struct {
	graph             *graphs.Graph
	allowDisconnected bool
	consistency       consistency.Mode
	fold              reduce.Op
	even              bool // a gather fails where it would go on without a rank: uneven=error
	startOwn          bool
	representation    representation
}

var modeKeys = []string{"graph", "allow_disconnected", "consistency", "fold", "uneven", "start", "sparse"}

// defaultMode is deterministic and what a newcomer expects: everybody averages
// with everybody, in lock-step.
func defaultMode(size int) (mode, error) {
	g, err := graphs.Parse("all", size)
	return mode{graph: g, fold: reduce.Mean}, err
}

// with returns m with the changes that options name. keys are those of modeKeys
// that the object has.
func (m mode) with(options string, size int, keys []string) (mode, error) {
	newGraph := false
	err := parseOptions(options, keys, func(key, value string) (err error) {
		switch key {
		case "graph":
			newGraph = true
			m.graph, err = graphs.Parse(value, size)
		case "allow_disconnected":
			newGraph = true
			m.allowDisconnected, err = parseBool(key, value)
		case "consistency":
			m.consistency, err = consistency.Parse(value)
		case "fold":
			m.fold, err = reduce.ParseOp(value)
		case "uneven":
			switch value {
			case "ok", "error":
				m.even = value == "error"
			default:
				err = say.Unknown(ErrInvalid, key, value, "ok", "error")
			}
		case "start":
			switch value {
			case "same", "own":
				m.startOwn = value == "own"
			default:
				err = say.Unknown(ErrInvalid, key, value, "same", "own")
			}
		case "sparse":
			m.representation, err = parseRepresentation(value)
		}
		return say.As(ErrInvalid, err)
	})
	if err == nil && newGraph && !m.allowDisconnected {
		err = say.As(ErrInvalid, m.graph.CheckConnected())
	}
	return m, err
}

// agreed is the part of m that all ranks must have alike: the fold is each
// rank's own business.
func (m mode) agreed() string {
	s := "graph=" + m.graph.String() + " consistency=" + m.consistency.String()
	if m.even {
		s += " uneven=error"
	}
	if m.startOwn {
		s += " start=own"
	}
	if m.representation != dense {
		s += " sparse=" + m.representation.String()
	}
	return s
}

// everyone tells whether all ranks send to all others, in lock-step.
func (m mode) everyone(size int) bool {
	if m.consistency.Kind != consistency.BSP || m.graph.Varies() {
		return false
	}
	for r := range size {
		if len(m.graph.AllReceivers(r)) < size-1 {
			return false
		}
	}
	return true
}
