package libmalt

import (
	"strings"

	"malt/graphs"
	"malt/internal/nearest"
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
			return failf(ErrInvalid, "option %q: key=value is expected, such as %s=…", pair, known[0])
		}
		if seen[key] {
			return failf(ErrInvalid, "option %s is given twice", key)
		}
		seen[key] = true
		found := false
		for _, k := range known {
			found = found || k == key
		}
		if !found {
			hint := ""
			if near := nearest.Word(key, known); near != "" {
				hint = "; did you mean " + near + "=?"
			}
			return failf(ErrInvalid, "option %s= is not known: it is one of %s%s", key, strings.Join(known, ", "), hint)
		}
		if value == "" {
			return failf(ErrInvalid, "option %s= has no value", key)
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
	return false, failf(ErrInvalid, "option %s=%s: true or false is expected", key, value)
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
				err = failf(ErrInvalid, "uneven=%s: ok or error is expected", value)
			}
		case "start":
			switch value {
			case "same", "own":
				m.startOwn = value == "own"
			default:
				err = failf(ErrInvalid, "start=%s: same or own is expected", value)
			}
		case "sparse":
			m.representation, err = parseRepresentation(value)
		}
		return invalid(err)
	})
	if err == nil && newGraph && !m.allowDisconnected {
		err = invalid(m.graph.CheckConnected())
	}
	return m, err
}

// invalid marks an error of a parser below as ErrInvalid.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return failf(ErrInvalid, "%s", err)
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
