//go:build explore

package engine

import "malt/libmalt/internal/core"

// State is what the steps of a sync depend on, beside its headers and the carrier.
func (m *meeting) State() []any { return []any{m.met} }

// ByMessages is its headers.
func (m *meeting) ByMessages() core.Call { return m.Collective }
