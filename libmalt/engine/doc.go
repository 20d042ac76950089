// Package engine is how objects travel that have no boxes: a Body has an engine
// (core.Engine) carry them. It does for engines what package boxes does for itself: it
// books clock and statistics, tells the other ranks where this one is, and lets one call at
// a time in.
//
// An engine adds up what comes as it comes. So there are no updates for a fold of the
// user's to see, no rows to name, and no fold but the engine's own.
//
// Changes is what the engines of packages butterfly and shards have in common.
package engine
