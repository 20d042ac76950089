package libmalt

import (
	"slices"

	"malt/libmalt/internal/core"
)

// AddRoute has a route carry the vectors in lock-step that it fits.
func AddRoute(fits func(v *Vector) bool, make func(o core.Boxed, bytes int) (core.Route, error)) {
	routes = slices.Insert(routes, 0, struct {
		fits func(v *Vector) bool
		make func(v *Vector, o core.Boxed, bytes int) (core.Route, error)
	}{func(v *Vector) bool { return v.mode.Load().inStep(v.Job.Size) && fits(v) }, func(_ *Vector, o core.Boxed, bytes int) (core.Route, error) {
		return make(o, bytes)
	}})
}

// AddEngine has an engine carry the vectors that it fits.
func AddEngine(fits func(v *Vector) bool, make func(o core.Object, slack uint64, bytes int) (core.Engine, error)) {
	engines = append(engines, struct {
		fits func(v *Vector) bool
		make func(v *Vector, o core.Object, bytes int) (core.Carrier, error)
	}{fits, func(v *Vector, o core.Object, bytes int) (core.Carrier, error) {
		return make(o, v.mode.Load().Rule.N, bytes)
	}})
}
