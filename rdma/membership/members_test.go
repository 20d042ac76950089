package membership

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"malt/rdma"
	"malt/rdma/vote"
)

// A frame that cannot be ends the connection.
func TestCorruptFrames(t *testing.T) {
	simulate(t, 1, []int{1, 1}, func(w *world) {
		m := w.ranks[0].m
		for _, body := range [][]byte{nil, make([]byte, 16), make([]byte, 2000)} {
			if err := m.Land(1, vote.Prepare, 0, body); !errors.Is(err, rdma.ErrCorrupt) {
				t.Errorf("%d bytes: %v", len(body), err)
			}
		}
		body := w.job.Append(nil, vote.Message{Kind: vote.Ask, Generation: 1, Number: 1})
		for range 2 * cap(m.inbox) { // more than wait: the sender repeats
			if err := m.Land(1, vote.Ask, 0, body); err != nil {
				t.Error(err)
			}
		}
		m.Close()
		if known, _ := m.Confirm(t.Context())(); known {
			t.Error("confirmed after Close")
		}
	})
}

// An idle rank pays for 20 of these a second.
func BenchmarkIdle(b *testing.B) {
	for _, hosts := range []int{2, 16, 128} {
		b.Run(fmt.Sprint(hosts, " hosts of 8"), func(b *testing.B) {
			w := &world{job: vote.Job{Hosts: hosts}, cuts: map[[2]int]time.Time{}}
			for h := range hosts {
				for range 8 {
					w.job.Of = append(w.job.Of, h)
					w.ranks = append(w.ranks, &process{w: w, rank: len(w.ranks), host: h, alive: true, gone: map[int]bool{}})
				}
			}
			p := w.ranks[0]
			page := &page{w: w, view: vote.View{Generation: 1, Members: w.job.Everyone()}}
			m := New(Config{Job: w.job, Unreachable: unreachable}, home{page, p}, cable{p})
			b.ReportAllocs()
			for b.Loop() {
				m.step(time.Now(), nil)
			}
		})
	}
}
