//go:build !race

package reduce

const raceDetector = false
