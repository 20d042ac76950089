//go:build race

package processes

// raceDetector: it does not see mapped memory, and slows everything down.
const raceDetector = true
