package core

import (
	"context"
	"sync"
	"testing"

	"malt/rdma/rdmatest/inmem"
)

// silent is a call without data.
type silent struct{ Sink }

func (silent) Begin(*Collective) error  { return nil }
func (silent) Expect(int, uint64) error { return nil }
func (silent) Finish(*Collective)       {}

// still is the body of an object that does nothing.
type still struct{}

func (still) CatchUp()                 {}
func (still) Writers(late []int) []int { return late }
func (still) Leave() error             { return nil }

// TestMuchNews: more objects have changed than fit into the header of a call.
func TestMuchNews(t *testing.T) {
	const objects = 2*(ChunkBytes-withHeader)/objectBytes + 100
	var ranks sync.WaitGroup
	for r, tr := range inmem.New(2) {
		ranks.Go(func() {
			j, err := NewJob(context.Background(), tr)
			if err != nil {
				t.Error(err)
				return
			}
			all := make([]*Member, objects)
			for i := range all {
				m := &Member{Body: still{}}
				m.Number(j, uint32(i+1), "")
				m.SetClock(uint64(r * (i + 1)))
				j.Enlist(m)
				m.Changed()
				all[i] = m
			}
			call := func() (Stepper, error) { return j.Collective("barrier", nil, nil, silent{}), nil }
			if err := j.Run(context.Background(), "barrier", call); err != nil {
				t.Error(err)
			}
			for i, m := range all {
				for from, at := range m.told {
					if at.clock != uint64(from*(i+1)) {
						t.Errorf("of object %d rank %d has heard that rank %d is at clock %d", i, r, from, at.clock)
					}
				}
			}
			if err := j.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	ranks.Wait()
}

// FuzzHeader: no bytes of a peer make the header of a collective read out of
// bounds.
func FuzzHeader(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x07\x00barrier\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xffbarrier\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		op, total, objects, n, err := parseHeader(b)
		if err != nil {
			return
		}
		if n > len(b) || len(objects)%objectBytes != 0 || 2+len(op)+8+4+len(objects) != n || total > 1<<47 {
			t.Fatalf("op %q, %d bytes of data, %d of objects, header of %d in %d bytes", op, total, len(objects), n, len(b))
		}
	})
}
