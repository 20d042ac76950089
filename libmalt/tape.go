package libmalt

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/rule"
)

// tape is the files of recorded runs: one of each rank, with a line for each gather that may fold
// other updates in another run: the number of the object, the clock of the rank, and
// rank:clock of each update.
type tape struct {
	rank, size int
	file       *os.File // of this run; nil: it is not recorded
	room       int
	line       []byte

	replays bool
	own     map[uint32][]rule.Gathered
	readers map[uint32][][]uint64 // by object and rank: clocks of this rank's updates that it folds
}

// TapeBytes is how long the file of a rank gets: each update takes 5 to 10 of them.
const TapeBytes = 64 << 20

var _ core.Tape = (*tape)(nil)

// newTape makes the file of a rank in folder record, and reads those in replay; "": not.
func newTape(rank, size int, record, replay string) (*tape, error) {
	t := &tape{rank: rank, size: size, room: TapeBytes}
	if replay != "" {
		t.replays, t.own, t.readers = true, map[uint32][]rule.Gathered{}, map[uint32][][]uint64{}
		for r := range size {
			if err := t.read(replay, r); err != nil {
				return nil, err
			}
		}
	}
	if record == "" {
		return t, nil
	}
	err := os.MkdirAll(record, 0o777)
	if err == nil {
		t.file, err = os.OpenFile(tapeName(record, rank, size), os.O_WRONLY|os.O_CREATE, 0o666)
	}
	if err == nil {
		if end, _ := t.file.Seek(0, io.SeekEnd); end > 0 {
			_ = t.file.Close()
			return nil, say.Errorf(ErrInvalid, "MALT_RECORD: %s has a recording of %d ranks", record, size).At("a new one would overwrite it").
				Try("Name another folder, or remove this one.").More("replay")
		}
	}
	if err != nil {
		return nil, say.Errorf(ErrInvalid, "MALT_RECORD: this run cannot be recorded").At("%v", err).Try("Name a folder that you may write to.")
	}
	return t, nil
}

func tapeName(folder string, rank, size int) string {
	return filepath.Join(folder, fmt.Sprintf("rank-%d-of-%d", rank, size))
}

// Record implements core.Tape. A line is written at once: so it is there if the process is killed.
func (t *tape) Record(object uint32, g rule.Gathered) (full bool, err error) {
	if t.file == nil {
		return false, nil
	}
	t.line = appendGathered(t.line[:0], object, g)
	_, err = t.file.Write(t.line)
	if t.room -= len(t.line); err != nil || t.room <= 0 {
		full = true
		_ = t.file.Close() // what it has is written
		t.file = nil
	}
	if err != nil {
		err = say.Errorf(nil, "MALT_RECORD: this rank records no more").At("%v", err)
	}
	return full && err == nil, err
}

// Close closes the file of this run.
func (t *tape) Close() error {
	if t == nil || t.file == nil {
		return nil
	}
	defer func() { t.file = nil }()
	return t.file.Close()
}

// Replay implements core.Tape.
func (t *tape) Replay(object uint32) *rule.Replay {
	if !t.replays {
		return nil
	}
	return rule.NewReplay(t.own[object], t.of(object))
}

func (t *tape) of(object uint32) [][]uint64 {
	if t.readers[object] == nil {
		t.readers[object] = make([][]uint64, t.size)
	}
	return t.readers[object]
}

// read reads the file of rank r: of this one all, of others what they folded of this one's. A last
// line without an end was being written when the rank was killed.
func (t *tape) read(folder string, r int) error {
	name := tapeName(folder, r, t.size)
	file, err := os.Open(name)
	if err != nil {
		return say.Errorf(ErrInvalid, "MALT_REPLAY: there is no recording of rank %d of %d", r, t.size).At("%v", err).
			Try("Name a folder that MALT_RECORD has filled, with as many ranks.")
	}
	defer func() { _ = file.Close() }()
	in := bufio.NewReader(file)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return say.Errorf(ErrInvalid, "MALT_REPLAY: line %d of %s cannot be read", number, name).At("%v", err)
		}
		object, g, ok := parseGathered(line, t.size)
		if !ok {
			return say.Errorf(ErrInvalid, "MALT_REPLAY: line %d of %s is not one of a recording", number, name)
		}
		t.put(r, object, g)
	}
}

// put takes what rank r has folded.
func (t *tape) put(r int, object uint32, g rule.Gathered) {
	if r == t.rank {
		t.own[object] = append(t.own[object], g)
	} else if clock := g.Of(t.rank); clock > 0 {
		clocks := t.of(object)
		clocks[r] = append(clocks[r], clock)
	}
}

// appendGathered appends a line, parseGathered reads it.
func appendGathered(b []byte, object uint32, g rule.Gathered) []byte {
	b = strconv.AppendUint(b, uint64(object), 10)
	b = strconv.AppendUint(append(b, ' '), g.Clock, 10)
	for _, f := range g.Folds {
		b = strconv.AppendInt(append(b, ' '), int64(f.Rank), 10)
		b = strconv.AppendUint(append(b, ':'), f.Clock, 10)
	}
	return append(b, '\n')
}

func parseGathered(line []byte, size int) (object uint32, g rule.Gathered, ok bool) {
	words := bytes.Fields(line)
	if len(words) < 2 {
		return 0, g, false
	}
	number := func(b []byte) (n uint64) {
		n, err := strconv.ParseUint(string(b), 10, 64)
		ok = ok && err == nil
		return n
	}
	ok = true
	object, g.Clock = uint32(number(words[0])), number(words[1])
	for _, w := range words[2:] {
		rank, clock, _ := bytes.Cut(w, []byte(":"))
		f := rule.Folded{Rank: int(number(rank)), Clock: number(clock)}
		ok = ok && f.Rank < size && f.Clock > 0 && !slices.ContainsFunc(g.Folds, func(o rule.Folded) bool { return o.Rank == f.Rank })
		g.Folds = append(g.Folds, f)
	}
	return object, g, ok
}
