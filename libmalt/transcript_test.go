package libmalt_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/libmalt/spvec"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts anew; read the difference before it is committed")

// TestTranscripts replays protocol runs that are kept as text: commands behind
// ">", below each what the ranks sent, took and released, and how the command
// ended. A command makes one step: one that would have to wait says for whom, and goes on
// where it is repeated.
//
//	> world 3 graph=ring consistency=notify-ack   all ranks make a vector
//	> world 2 rows=5 sparse=model …               of so many rows, of which few are told
//	> 0 scatter [1 2]                             rank 0, to all or to those
//	> 0 change 3 4                                those rows
//	> 0 gather | sync | barrier | leave | die
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s differs; with -rewrite it becomes\n%s", file, got)
			}
		})
	}
}

// stage is the ranks of one transcript.
type stage struct {
	t      *testing.T
	log    *bytes.Buffer
	worlds []*libmalt.World
	vs     []*libmalt.Vector
	calls  []*routetest.Held // under way,
	doing  []string          // and their commands
	rows   int               // of a sparse vector
}

// replay runs the commands of text and returns it with what happened.
func replay(t *testing.T, text string) string {
	s := &stage{t: t, log: &bytes.Buffer{}}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			s.log.WriteString(line)
		}
		if command, ok := strings.CutPrefix(line, "> "); ok {
			s.log.WriteString(line)
			s.command(strings.Fields(command))
		}
	}
	for r, w := range s.worlds {
		if w != nil {
			s.giveUp(r)
			if err := w.Close(); err != nil {
				t.Errorf("rank %d: Close: %v", r, err)
			}
		}
	}
	return s.log.String()
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.log, "  "+format+"\n", args...) }

func (s *stage) command(words []string) {
	if words[0] == "world" {
		s.world(words)
		return
	}
	r, err := strconv.Atoi(words[0])
	if err != nil || r >= len(s.worlds) || len(words) < 2 {
		s.t.Fatalf("transcript: %q", words)
	}
	w, v := s.worlds[r], s.vs[r]
	switch words[1] {
	case "scatter":
		var to []int
		for _, word := range words[2:] {
			rank, _ := strconv.Atoi(word)
			to = append(to, rank)
		}
		if s.rows == 0 {
			fill(v.Bytes(), value(r, v.Clock()+1))
		}
		err = s.step(r, words[1], func(ctx context.Context) error { _, err := v.Scatter(ctx, to, 1); return err })
	case "change":
		for _, word := range words[2:] {
			row, _ := strconv.Atoi(word)
			put(v.Bytes(), row, at(v.Bytes(), row)+1)
		}
	case "gather":
		if s.rows > 0 {
			err = s.step(r, words[1], func(ctx context.Context) error { return s.look(ctx, v) })
			break
		}
		err = s.step(r, words[1], func(ctx context.Context) error { _, err := v.Gather(ctx, ""); return err })
	case "sync":
		err = s.step(r, words[1], func(ctx context.Context) error { _, err := v.Sync(ctx, 1); return err })
	case "barrier":
		err = s.step(r, words[1], w.Barrier)
	case "leave":
		s.giveUp(r)
		err = w.Close()
		s.worlds[r] = nil
	case "die":
		w.Abort(rdma.HasFailed(w.Rank(), "killed by the transcript"))
		s.worlds[r] = nil
	default:
		s.t.Fatalf("transcript: %q", words)
	}
	switch {
	case errors.Is(err, libmalt.ErrTimeout):
		s.say("waits: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	case err != nil:
		s.say("error: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	default:
		s.say("done at clock %d", v.Clock())
	}
}

// step makes a step of the call of rank r that is under way, or the first of this one.
func (s *stage) step(r int, command string, call func(ctx context.Context) error) error {
	if s.calls[r] == nil {
		s.calls[r], s.doing[r] = routetest.Hold(call), command
	} else if s.doing[r] != command {
		s.t.Fatalf("transcript: rank %d: %s while its %s goes on", r, command, s.doing[r])
	}
	waits, err := s.calls[r].Step()
	if waits == nil {
		s.calls[r] = nil
	}
	return cmp.Or(waits, err)
}

// giveUp gives the call of rank r up that is under way.
func (s *stage) giveUp(r int) {
	if s.calls[r] != nil {
		_ = s.calls[r].GiveUp()
	}
}

// look gathers into a sparse vector and tells what is folded.
func (s *stage) look(ctx context.Context, v *libmalt.Vector) error {
	us, err := v.Begin(ctx)
	if err != nil {
		return err
	}
	for _, u := range us {
		var rows []string
		for i := range len(u.Data) / 4 {
			row := uint32(i)
			if u.Rows != nil {
				row = u.Rows[i]
			}
			rows = append(rows, fmt.Sprintf("row %d as %v", row, at(u.Data, i)))
		}
		s.say("folds of %d: %s", u.Rank, cmp.Or(strings.Join(rows, ", "), "no row"))
	}
	return v.End(true)
}

func (s *stage) world(words []string) {
	n, err := strconv.Atoi(words[1])
	if err != nil {
		s.t.Fatal(err)
	}
	options := strings.Join(words[2:], " ")
	if text, ok := strings.CutPrefix(options, "rows="); ok {
		text, options, _ = strings.Cut(text, " ")
		if s.rows, err = strconv.Atoi(text); err != nil {
			s.t.Fatal(err)
		}
	}
	s.worlds, s.vs, s.calls = make([]*libmalt.World, n), make([]*libmalt.Vector, n), make([]*routetest.Held, n)
	s.doing = make([]string, n)
	var quiet sync.Mutex // the making is concurrent and not part of the transcript
	recorders := make([]*recorder, n)
	var all sync.WaitGroup
	for r, tr := range inmem.New(n) {
		recorders[r] = &recorder{Transport: tr, sparse: s.rows > 0}
		all.Go(func() {
			ctx := background(s.t)
			w, err := libmalt.NewWorld(ctx, recorders[r], libmalt.Config{})
			if err != nil {
				s.t.Errorf("rank %d: %v", r, err)
				return
			}
			v, err := vector(ctx, w, max(s.rows, 1), options)
			if err != nil {
				s.t.Errorf("rank %d: %v", r, err)
			}
			quiet.Lock()
			s.worlds[r], s.vs[r] = w, v
			quiet.Unlock()
		})
	}
	all.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
	for _, r := range recorders {
		r.say = s.say
	}
}

// recorder tells every message of one rank. Collectives show as "call n".
type recorder struct {
	rdma.Transport
	say    func(format string, args ...any) // nil: quiet
	sparse bool                             // tell what messages are made of
}

func (t *recorder) tell(format string, args ...any) {
	if t.say != nil {
		t.say(format, args...)
	}
}

func (t *recorder) Publish(ctx context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
	out, err := t.Transport.Publish(ctx, name, s, readers)
	return &recordedOut{out, t, name, readers}, err
}

func (t *recorder) Subscribe(ctx context.Context, name string, s rdma.Spec, senders []int) ([]rdma.Inbox, error) {
	ins, err := t.Transport.Subscribe(ctx, name, s, senders)
	for i, in := range ins {
		ins[i] = &recordedIn{in, t, name}
	}
	return ins, err
}

func (t *recorder) Share(name string, bytes, words int) (rdma.Shared, error) {
	s, err := t.Transport.Share(name, bytes, words)
	return &recordedShared{s, t}, err
}

// recordedShared tells the steps of averages in place: the words of package shared.
type recordedShared struct {
	rdma.Shared
	t *recorder
}

func (s *recordedShared) Set(i int, v uint64) {
	s.Shared.Set(i, v)
	switch {
	case i != stepWord:
	case v%2 == 1:
		s.t.tell("%d arrives at clock %d", s.t.Rank(), (v+1)/2)
	default:
		s.t.tell("%d has folded its part of clock %d", s.t.Rank(), v/2)
	}
}

func (s *recordedShared) Swap(rank, i int, old, v uint64) bool {
	ok := s.Shared.Swap(rank, i, old, v)
	if ok {
		at := v & (1<<47 - 1) // without who has, and folds for all
		s.t.tell("%d decides clock %d: %s", s.t.Rank(), at/2, [...]string{"in place", "through boxes"}[at%2])
	}
	return ok
}

// what is the name of an update: its clock, or the collective it is part of.
func what(box string, s rdma.Stamp) string {
	switch {
	case box == "world" && s.Kind >= 1<<15:
		return fmt.Sprintf("why it gives up call %d", s.Tag)
	case box == "world":
		return fmt.Sprintf("call %d", s.Tag)
	}
	return fmt.Sprintf("clock %d", s.Clock)
}

type recordedOut struct {
	rdma.Outbox
	t       *recorder
	name    string
	readers []int
}

func (o *recordedOut) Commit(n int, s rdma.Stamp, to []int) error {
	err := o.Outbox.Commit(n, s, to)
	if to == nil {
		to = o.readers
	}
	text := what(o.name, s)
	if o.t.sparse && o.name != "world" {
		text += fmt.Sprintf(", %s in %d bytes,", spvec.Kind(s.Kind), n)
	}
	o.t.tell("%d sends %s to %v", o.t.Rank(), text, to)
	return err
}

func (o *recordedOut) Excuse(reader int) {
	o.Outbox.Excuse(reader)
	o.t.tell("%d does not wait for the acks of %d", o.t.Rank(), reader)
}

type recordedIn struct {
	rdma.Inbox
	t    *recorder
	name string
}

func (i *recordedIn) Next() (rdma.Update, bool, error) {
	u, ok, err := i.Inbox.Next()
	if ok {
		i.t.tell("%d takes %s from %d%s", i.t.Rank(), what(i.name, u.Stamp), i.From(), map[bool]string{true: ", not meant for it"}[u.Data == nil])
	}
	return u, ok, err
}

func (i *recordedIn) At(clock uint64) (rdma.Update, bool, error) {
	u, ok, err := i.Inbox.At(clock)
	if ok {
		i.t.tell("%d takes %s from %d", i.t.Rank(), what(i.name, u.Stamp), i.From())
	}
	return u, ok, err
}

func (i *recordedIn) Release(seq uint64) {
	i.Inbox.Release(seq)
	i.t.tell("%d acks up to update %d of %d", i.t.Rank(), seq, i.From())
}

func (i *recordedIn) Return() {
	i.Inbox.Return()
	i.t.tell("%d acks all there is of %d", i.t.Rank(), i.From())
}
