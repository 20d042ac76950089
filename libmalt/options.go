package libmalt

import (
	"cmp"
	"slices"
	"strings"

	"malt/graphs"
	"malt/internal/say"
	"malt/libmalt/boxes"
	"malt/libmalt/codec"
	"malt/libmalt/filter"
	"malt/libmalt/narrow"
	"malt/libmalt/reduce"
	"malt/libmalt/rule"
)

// parseOptions reads "key=value key=value …", the one grammar of C, Python,
// command line and environment, and hands each pair to its setter.
func parseOptions(options string, known []string, set func(key, value string) error) error {
	seen := map[string]bool{}
	for _, pair := range strings.Fields(options) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return say.Errorf(ErrInvalid, "option %.40q: expected key=value, such as %s=…", pair, known[0])
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

// mode is how an object exchanges updates.
type mode struct {
	boxes.Mode
	allowDisconnected bool
	fold              reduce.Op
	startOwn          bool
	sparse            codec.Kind
	filter            filter.Filter
	wire              narrow.Kind
	keyed             bool // its rows have ids, which no option says
}

// takers are what accepts an option.
type takers uint8

const (
	newSegment takers = 1 << iota
	newVector
	openSegment // to be configured
	openVector

	newObject  = newSegment | newVector
	openObject = openSegment | openVector
)

// options are those of objects, with the values that they have if these are few.
var options = []struct {
	key    string
	of     takers
	values []string
	set    func(m *mode, value string, size int) error
}{
	{"graph", newObject | openObject, graphs.Names(), func(m *mode, value string, size int) (err error) {
		m.Graph, err = graphs.Parse(value, size)
		return err
	}},
	{"allow_disconnected", newObject | openObject, []string{"false", "true"}, func(m *mode, value string, _ int) (err error) {
		m.allowDisconnected, err = parseBool("allow_disconnected", value)
		return err
	}},
	{"consistency", newObject | openObject, rule.Names(), func(m *mode, value string, _ int) (err error) {
		m.Rule, err = rule.Parse(value)
		return err
	}},
	{"fold", newVector | openVector, reduce.Names(), func(m *mode, value string, _ int) (err error) {
		m.fold, err = reduce.ParseOp(value)
		return err
	}},
	{"uneven", newVector, []string{"ok", "error"}, func(m *mode, value string, _ int) (err error) {
		m.Even, err = second("uneven", value, "ok", "error")
		return err
	}},
	{"start", newVector, []string{"same", "own"}, func(m *mode, value string, _ int) (err error) {
		m.startOwn, err = second("start", value, "same", "own")
		return err
	}},
	{"sparse", newVector, codec.Names(), func(m *mode, value string, _ int) (err error) {
		m.sparse, err = codec.Parse(value)
		return err
	}},
	{"filter", newVector, filter.Names(), func(m *mode, value string, _ int) (err error) {
		m.filter, err = filter.Parse(value)
		return err
	}},
	{"wire", newVector, narrow.Names(), func(m *mode, value string, _ int) (err error) {
		m.wire, err = narrow.Parse(value)
		return err
	}},
}

// Names are the values of those options of vectors that have few, by option.
func Names() map[string][]string {
	names := map[string][]string{}
	for _, o := range options {
		names[o.key] = o.values
	}
	return names
}

// second tells whether value is the second of two.
func second(key, value, first, second string) (bool, error) {
	if value != first && value != second {
		return false, say.Unknown(ErrInvalid, key, value, first, second)
	}
	return value == second, nil
}

// defaultMode is deterministic and what a newcomer expects: everybody averages
// with everybody, in lock-step.
func defaultMode(size int) (mode, error) {
	g, err := graphs.Parse("all", size)
	return mode{Mode: boxes.Mode{Graph: g}, fold: reduce.Mean}, err
}

// with returns m with the changes that text names, of an object that is one of those.
func (m mode) with(text string, size int, of takers) (mode, error) {
	var known []string
	for _, o := range options {
		if o.of&of != 0 {
			known = append(known, o.key)
		}
	}
	old := m
	err := parseOptions(text, known, func(key, value string) error {
		for _, o := range options {
			if o.key == key {
				return say.As(ErrInvalid, o.set(&m, value, size))
			}
		}
		return nil
	})
	if err == nil {
		err = cmp.Or(m.checkFold(old, of), m.checkFilter(), m.checkWire(size))
	}
	changed := m.Graph != old.Graph || m.allowDisconnected != old.allowDisconnected
	if err == nil && changed && !m.allowDisconnected {
		err = say.As(ErrInvalid, m.Graph.CheckConnected())
	}
	return m, err
}

// checkFold refuses what does not go with a fold of changes.
func (m mode) checkFold(old mode, of takers) error {
	fold := m.fold
	if of == openVector && fold != old.fold && (fold.Changes() || old.fold.Changes()) {
		return say.Errorf(ErrInvalid, "fold=%s instead of fold=%s: a vector keeps a fold of changes, or never has one", fold, old.fold).
			Try("Make another vector with it.")
	}
	if of == openVector && fold.Changes() && m.Graph.String() != old.Graph.String() {
		return say.Errorf(ErrInvalid, "graph=%s instead of graph=%s: a vector with fold=%s keeps its graph", m.Graph, old.Graph, fold).
			Try("Make another vector with it.")
	}
	refused := func(option, why, do string) error {
		return say.Errorf(ErrInvalid, "fold=%s does not go with %s", fold, option).At("%s", why).Try("%s", do)
	}
	graph := "graph=" + m.Graph.String()
	switch {
	case !fold.Changes() && m.Graph.Keepers() > 0:
		return say.Errorf(ErrInvalid, "%s goes with fold=sum-changes or mean-changes, got fold=%s", graph, fold).
			At("the ranks that keep a part add changes up").Try("Take fold=mean-changes, or graph=star, where rank 0 exchanges with all.")
	case !fold.Changes():
		return nil
	case m.Graph.String() != "all" && !m.Graph.OfChanges():
		return refused(graph, "a change travels over one edge only", "Take graph=all, butterfly or shards, or fold=mean, which goes with every other graph.")
	case m.Graph.OfChanges() && m.Rule.Kind == rule.BSP:
		return refused("consistency=bsp on "+graph, "there what passes through several ranks may be newer than that of a step", "Take consistency=ssp:0, which waits alike.")
	case m.Rule.Kind == rule.NotifyAck:
		return refused("consistency="+m.Rule.String(), "there no update is overwritten, so sum loses nothing either", "Take consistency=bsp, ssp:2 or async, or fold=sum.")
	case m.sparse != codec.Dense && m.Graph.Keepers() == 0:
		return refused("sparse="+m.sparse.String()+" on "+graph, "there a total of changes is sent as a whole", "Take graph=shards with sparse=model, or leave sparse out.")
	case m.sparse == codec.Gradient:
		return refused("sparse=gradient", "what is pushed is what has changed in a model", "Take sparse=model.")
	case m.startOwn:
		return refused("start=own", "changes are added to values that are the same on all ranks", "Take start=same.")
	}
	return nil
}

// checkFilter refuses a filter where no row can be held back.
func (m mode) checkFilter() error {
	if m.filter.Kind == filter.None || m.sparse == codec.Model {
		return nil
	}
	return say.Errorf(ErrInvalid, "filter=%s goes with sparse=model, got sparse=%s", m.filter, m.sparse).
		At("a filter holds back rows that have changed little, until they have changed more").
		Try("Make the vector with sparse=model, or leave filter out.")
}

// checkWire refuses to round what no later update makes good.
func (m mode) checkWire(size int) error {
	if m.wire == narrow.Exact || m.inStep(size) && (m.fold == reduce.Mean || m.fold == reduce.Sum) {
		return nil
	}
	return say.Errorf(ErrInvalid, "wire=%s goes with consistency=bsp on graph=all, with fold=mean or sum, and without sparse", m.wire).
		At("what is rounded there is made good with the next sync; other updates travel as they are").
		Try("Leave wire out, or the other options.")
}

// inStep tells whether all ranks send whole values to all, in lock-step.
func (m mode) inStep(size int) bool {
	return m.sparse == codec.Dense && !m.fold.Changes() && m.Everyone(size)
}

// agreed is the part of m that all ranks must have alike: a fold other than that of changes, and of
// rows with ids, is each rank's own business.
func (m mode) agreed() string {
	s := "graph=" + m.Graph.String() + " consistency=" + m.Rule.String()
	if m.Even {
		s += " uneven=error"
	}
	if m.startOwn {
		s += " start=own"
	}
	if m.sparse != codec.Dense {
		s += " sparse=" + m.sparse.String()
	}
	if m.filter.Kind != filter.None {
		s += " filter=" + m.filter.String()
	}
	if m.wire != narrow.Exact {
		s += " wire=" + m.wire.String()
	}
	if m.fold.Changes() || m.keyed {
		s += " fold=" + m.fold.String()
	}
	return s
}
