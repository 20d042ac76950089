package libmalt

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/rule"
)

// tape is the files of recorded runs: one of each rank, with a line in JSON for each vector or segment that is made,
// a string, and for each gather that may fold other updates in another run, an array: the number of the object, the
// clock of the rank, then rank and clock of each update.
type tape struct {
	rank, size int
	file       *os.File // of this run; nil: it is not recorded
	room       int
	replays    map[uint32]*rule.Replay // by object; nil unless a run is replayed
	made       []string                // by this rank in that run, and yet to be made in this one
}

// TapeBytes is how long the file of a rank gets: each update takes 5 to 10 of them.
const TapeBytes = 64 << 20

var _ core.Tape = (*tape)(nil)

// newTape makes the file of a rank in folder record, and reads those in replay; "": not.
func newTape(rank, size int, record, replay string) (*tape, error) {
	t := &tape{rank: rank, size: size, room: TapeBytes}
	if replay != "" {
		t.replays = map[uint32]*rule.Replay{}
		for r := range size {
			if err := t.read(replay, r); err != nil {
				return nil, err
			}
		}
	}
	if record == "" {
		return t, nil
	}
	name := tapeName(record, rank, size)
	if was, err := os.Stat(name); err == nil && was.Size() > 0 {
		return nil, say.Errorf(ErrInvalid, "MALT_RECORD: %s has a recording of %d ranks", record, size).At("a new one would overwrite it").
			Try("Name another folder, or remove this one.").More("replay")
	}
	err := os.MkdirAll(record, 0o777)
	if err == nil {
		t.file, err = os.Create(name)
	}
	if err != nil {
		return nil, say.Errorf(ErrInvalid, "MALT_RECORD: this run cannot be recorded").At("%v", err).Try("Name a folder that you may write to.")
	}
	return t, nil
}

func tapeName(folder string, rank, size int) string {
	return filepath.Join(folder, fmt.Sprintf("rank-%d-of-%d", rank, size))
}

// makes notes what is made, and compares it with the recorded run. That may have had no room for it.
func (t *tape) makes(op string) error {
	if t == nil {
		return nil
	}
	if len(t.made) > 0 {
		if was := t.made[0]; was != op {
			ours, theirs := core.Apart(op, was)
			return say.Errorf(ErrMismatch, "%s does not make what it made in the recorded run", core.CallOf(op)).
				At("this run: %s\nrecorded: %s", ours, theirs).Try("Replay the same program, with the same ranks, data and random numbers.")
		}
		t.made = t.made[1:]
	}
	_ = t.write(op) // the next gather tells of a full disk
	return nil
}

// Record implements core.Tape. A line is written at once: so it is there if the process is killed.
func (t *tape) Record(g rule.Gathered) (ends error) {
	if t.file == nil {
		return nil
	}
	if ends = t.write(g); ends == nil && t.room <= 0 {
		ends = fmt.Errorf("its file has %d MB", TapeBytes>>20)
	}
	if ends != nil {
		_ = t.file.Close() // what it has is written
		t.file = nil
	}
	return ends
}

func (t *tape) write(line any) error {
	if t.file == nil {
		return nil
	}
	text, _ := json.Marshal(line) // numbers and a string always can be
	t.room -= len(text) + 1
	_, err := t.file.Write(append(text, '\n'))
	return err
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
	if t.replays != nil && t.replays[object] == nil {
		t.replays[object] = &rule.Replay{Readers: make([][]uint64, t.size)}
	}
	return t.replays[object]
}

// read reads the file of rank r. A last line without an end was being written when the rank was killed.
func (t *tape) read(folder string, r int) error {
	name := tapeName(folder, r, t.size)
	file, err := os.Open(name)
	if err != nil {
		return say.Errorf(ErrInvalid, "MALT_REPLAY: there is no recording of rank %d of %d", r, t.size).At("%v", err).
			Try("Name a folder that MALT_RECORD has filled, with as many ranks.")
	}
	defer func() { _ = file.Close() }()
	in := json.NewDecoder(file)
	for number := 1; ; number++ {
		var line json.RawMessage
		switch err := in.Decode(&line); {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return nil
		case err != nil || !t.put(r, line):
			return say.Errorf(ErrInvalid, "MALT_REPLAY: line %d of %s is not one of a recording", number, name)
		}
	}
}

// put takes a line of rank r: of this one all, of others what they folded of this one's. false: it is none.
func (t *tape) put(r int, text json.RawMessage) bool {
	var op string
	if json.Unmarshal(text, &op) == nil {
		if r == t.rank {
			t.made = append(t.made, op)
		}
		return true
	}
	var line rule.Gathered // a new one, which is kept
	if json.Unmarshal(text, &line) != nil || len(line) < 2 || len(line)%2 != 0 {
		return false
	}
	for i := 2; i < len(line); i += 2 {
		if line[i] >= uint64(t.size) || line[i+1] == 0 {
			return false
		}
	}
	p := t.Replay(uint32(line[0]))
	if r == t.rank {
		p.Gathers = append(p.Gathers, line)
	} else if clock := line.Of(t.rank); clock > 0 {
		p.Readers[r] = append(p.Readers[r], clock)
	}
	return true
}
