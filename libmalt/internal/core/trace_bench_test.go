package core

import "testing"

// BenchmarkEvent is what an event costs: of a fold from seven ranks, off and on.
func BenchmarkEvent(b *testing.B) {
	for name, room := range map[string]int{"off": 0, "on": 1024} {
		b.Run(name, func(b *testing.B) {
			var events []Event
			if room > 0 {
				events = make([]Event, room)
			}
			t := NewTrace(new(Now), events, one)
			m := &Member{ID: 1}
			ranks, ages := []int{0, 1, 2, 3, 4, 5, 6}, make([]byte, 7)
			for b.Loop() {
				t.Folded(t.Begin(), m, 9, ranks, ages)
			}
		})
	}
}
