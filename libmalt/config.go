package libmalt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma/auto"
)

// Config says who this process is in the job and where it meets the others.
type Config struct {
	// Rank is this process's number, 0 … Size-1, different in each.
	Rank int
	// Size is the number of ranks; 1 needs no store and no launcher.
	Size int
	// Witnesses is the number of processes besides, with Continue: each votes for a host
	// without ranks (Witness), and has a number from Size on.
	Witnesses int
	// Store is where the ranks meet: "local:" and a job id that no other job on
	// the machine has, or host:port of rank 0 for those of several machines.
	Store string
	// StoreFD are the descriptors of sockets that listen at the store, if rank 0
	// has been given some.
	StoreFD []int
	// Interface says at which addresses of this machine the rank can be reached:
	// rdma/rendezvous/meeting has the grammar. "": where others seem to be.
	Interface string
	// Together are the first and the last of the ranks that were started along with
	// this one, "4-7", so that launchers which were told different things are found
	// out; "": not known.
	Together string
	// Version of MALT: a rank of another one is refused.
	Version string
	// Token is the job's secret; a process without it cannot join.
	Token string
	// Timeout bounds every wait whose caller names none. Too short, and a rank
	// that merely loads its data late ends the job; too long, and a wrong script
	// seems to hang.
	Timeout time.Duration
	// Unreachable is for how long another machine may give no sign of life before its
	// ranks are dead; 0: 5 s, with Continue 0.5 s. Too short, and a cable that was pulled out
	// for a moment ends the job, or the others go on without that machine.
	Unreachable time.Duration
	// Continue has the job go on when a rank dies, while at least MinRanks (0: one) are left;
	// otherwise a death ends it. All ranks say the same.
	Continue bool
	MinRanks int
	// Replace has, besides, new processes take the place of ranks that die, on one machine. Such a
	// process has the number of starts in place of a dead rank that there were, from 1, in Restart.
	Replace bool
	Restart int
	try     uint64 // how often ranks have tried to meet again before they did
	was     uint64 // the generation of a rank that meets the others again; 0: it is new
	// Joined is called when a process with Restart takes part, in its first sync.
	Joined func() `json:"-"`
	// Congestion names the congestion control of connections between machines; "": the
	// system's.
	Congestion string
	// Fabric says by which provider of Libfabric, a file, updates go by RDMA between machines, as auto.Fabric
	// has it; "": by none.
	Fabric, Libfabric string
	// Encrypt says which connections between machines are encrypted, with TLS 1.3: by
	// default those of which an end has an address that is not private.
	Encrypt auto.Encryption
	// Transport is "auto", or one of rdma/auto by name.
	Transport string

	// Record is a folder in which each rank notes which updates its gathers have folded, and Replay
	// one that was filled so: then gathers fold the same. "": neither.
	Record, Replay string

	// Events is for how many events the rank has room in its Trace: a reader that comes too
	// late misses the older ones.
	Events int
	// Trace is what others see of this rank; nil: nobody does.
	Trace *Trace `json:"-"`
	// Report, if not nil, is told now and then what Join waits for, where the store
	// is host:port: ranks that have not come, as far as this one knows, and what
	// stands in the way, and what to do about that, or "". It must not block.
	Report func(absent []int, detail, do string) `json:"-"`
}

// DefaultTimeout is the Timeout of a Config that names none.
const DefaultTimeout = 300 * time.Second

var configKeys = []string{"rank", "size", "store", "store_fd", "token", "encrypt", "interface", "congestion", "fabric", "libfabric", "together", "timeout", "unreachable", "on_death", "min_ranks", "restart", "witnesses", "transport", "events", "record", "replay"}

// ConfigFromEnv reads MALT_RANK, MALT_SIZE, MALT_STORE, MALT_STORE_FD,
// MALT_TOKEN, MALT_ENCRYPT, MALT_INTERFACE, MALT_CONGESTION, MALT_FABRIC, MALT_LIBFABRIC, MALT_TOGETHER,
// MALT_TIMEOUT and MALT_UNREACHABLE (seconds), MALT_ON_DEATH, MALT_MIN_RANKS,
// MALT_RESTART, MALT_WITNESSES, MALT_TRANSPORT, MALT_EVENTS, MALT_RECORD and MALT_REPLAY. Without any of them the job is this process alone.
func ConfigFromEnv(getenv func(string) string) (Config, error) {
	c := Config{Size: 1, Timeout: DefaultTimeout, Transport: "auto"}
	for _, key := range configKeys {
		name := "MALT_" + strings.ToUpper(key)
		value := getenv(name)
		if value == "" {
			continue
		}
		if err := c.set(name, key, value); err != nil {
			return c, err
		}
	}
	if err := reduce.CheckPath(getenv("MALT_KERNEL")); err != nil {
		return c, say.As(ErrInvalid, err)
	}
	if c.Store != "" && getenv("MALT_SIZE") == "" {
		c.Size = 0 // an option may say it
	}
	return c, nil
}

// Set applies "key=value …" on top of c: rank, size, store, store_fd, token,
// encrypt, interface, congestion, fabric, libfabric, together, timeout and unreachable (seconds),
// on_death, min_ranks, restart, witnesses, transport, events, record, replay.
func (c *Config) Set(options string) error {
	return parseOptions(options, configKeys, func(key, value string) error { return c.set(key, key, value) })
}

// set sets key, which the user calls name.
func (c *Config) set(name, key, value string) (err error) {
	whole := func(p *int, least, most int) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return say.Errorf(ErrInvalid, "%s=%.40s: expected a whole number from %d to %d", name, value, least, most)
		}
		*p = n
		return nil
	}
	switch key {
	case "rank":
		return whole(&c.Rank, 0, maxSize)
	case "size":
		return whole(&c.Size, 1, maxSize)
	case "store":
		c.Store = value
	case "store_fd":
		c.StoreFD = nil
		for _, word := range strings.Split(value, ",") {
			fd, err := strconv.Atoi(word)
			if err != nil || fd < 1 || fd > math.MaxInt32 { // 0 is standard input
				return say.Errorf(ErrInvalid, "%s=%.40s: expected a whole number of at least 1, or several separated by commas", name, value)
			}
			c.StoreFD = append(c.StoreFD, fd)
		}
	case "encrypt":
		on := map[string]auto.Encryption{"1": auto.EncryptAlways, "true": auto.EncryptAlways, "0": auto.EncryptNever, "false": auto.EncryptNever}
		v, ok := on[strings.ToLower(value)]
		if !ok {
			return say.Errorf(ErrInvalid, "%s=%.40s: expected 1 or 0", name, value)
		}
		c.Encrypt = v
	case "interface":
		c.Interface = value
	case "congestion":
		c.Congestion = value
	case "fabric":
		c.Fabric = value
	case "libfabric":
		c.Libfabric = value
	case "together":
		c.Together = value
	case "token":
		if len(value) < leastToken {
			return say.Errorf(ErrInvalid, "%s has %d characters and could be guessed: expected %d or more", name, len(value), leastToken).
				Try("`malt token` makes one.")
		}
		c.Token = value
	case "on_death":
		if value != "stop" && value != "continue" && value != "replace" {
			return say.Unknown(ErrInvalid, name, value, "stop", "continue", "replace")
		}
		c.Continue, c.Replace = value != "stop", value == "replace"
	case "min_ranks":
		return whole(&c.MinRanks, 1, maxSize)
	case "restart":
		return whole(&c.Restart, 0, maxRestarts)
	case "witnesses":
		return whole(&c.Witnesses, 0, maxSize)
	case "transport":
		c.Transport = value
	case "record":
		c.Record = value
	case "replay":
		c.Replay = value
	case "events":
		return whole(&c.Events, 0, maxEvents)
	case "timeout":
		s, err := strconv.ParseFloat(value, 64)
		if err != nil || !(s > 0) || s > 1e9 {
			return say.Errorf(ErrInvalid, "%s=%.40s: expected a positive number of seconds", name, value)
		}
		c.Timeout = time.Duration(s * float64(time.Second))
	case "unreachable":
		s, err := strconv.ParseFloat(value, 64)
		if err != nil || !(s >= 0.2) || s > 1e9 {
			return say.Errorf(ErrInvalid, "%s=%.40s: expected 2 or more seconds, or with on_death=continue 0.2 or more", name, value)
		}
		c.Unreachable = time.Duration(s * float64(time.Second))
	}
	return nil
}

// leastToken is how long a job's secret is at least.
const leastToken = 16

// maxSize bounds ranks as a guard against typing errors; boxes have room for
// more.
const maxSize = 1024

// maxRestarts is more than anybody could mean.
const maxRestarts = 1000

// maxEvents take 256 MB.
const maxEvents = 1 << 20

func (c Config) validate() error {
	if c.Size == 0 {
		return say.Errorf(ErrInvalid, "the store %.60s is set, but the number of ranks is not", c.Store).
			Try("Set MALT_SIZE and MALT_RANK, too, or start the program with `malt run`.")
	}
	if c.Rank >= c.Size {
		return say.Errorf(ErrInvalid, "rank %d of %d: ranks are numbered from 0 to %d", c.Rank, c.Size, c.Size-1)
	}
	if c.Size > 1 && c.Store == "" {
		return say.Errorf(ErrInvalid, "rank %d of %d has no store at which to meet the others", c.Rank, c.Size).
			Try("Start the program with `malt run -n %d`, or set MALT_STORE.", c.Size)
	}
	if c.Unreachable > 0 && c.Unreachable < 2*time.Second && !c.Continue {
		return say.Errorf(ErrInvalid, "unreachable=%g: expected 2 or more seconds, since MALT asks an idle machine once a second", c.Unreachable.Seconds()).
			Try("Take 2 or more. With on_death=continue 0.2 are enough.")
	}
	if c.MinRanks > c.Size {
		return say.Errorf(ErrInvalid, "min_ranks=%d, and the job has %d ranks", c.MinRanks, c.Size).Try("Take a number from 1 to %d.", c.Size)
	}
	if c.MinRanks > 1 && !c.Continue {
		return say.Errorf(ErrInvalid, "min_ranks=%d goes with on_death=continue: without it the first death ends the job", c.MinRanks).
			Try("Give both, or neither.")
	}
	if c.Replace && c.Size > 1 && !strings.HasPrefix(c.Store, "local:") {
		return say.Errorf(ErrUnsupported, "on_death=replace is for ranks of one machine, and these meet at %.60s", c.Store).
			Try("Start the job with `malt run -n %d`, or take on_death=continue.", c.Size)
	}
	if c.Restart > 0 && !c.Replace {
		return say.Errorf(ErrInvalid, "restart=%d goes with on_death=replace", c.Restart).Try("Give both, or neither.")
	}
	if c.Continue && c.Record+c.Replay != "" {
		return say.Errorf(ErrInvalid, "MALT_RECORD and MALT_REPLAY do not go with on_death=continue or replace").At("a replay cannot repeat a death").Try("Leave one of them out.")
	}
	if c.Record != "" && c.Record == c.Replay {
		return say.Errorf(ErrInvalid, "MALT_RECORD and MALT_REPLAY name the same folder, %.60s", c.Record).Try("Take another one for the new recording.")
	}
	return c.witnessed()
}

// witnessed fails unless the job can have its witnesses.
func (c Config) witnessed() error {
	if c.Witnesses > 0 && (!c.Continue || c.Store == "") {
		return say.Errorf(ErrInvalid, "witnesses=%d, which vote on who goes on after a death", c.Witnesses).At("on_death=continue or the store is missing").
			Try("Start the job with `malt run --on-death continue -H a:4,b:4,c:0`.")
	}
	return nil
}

// Witness has this process, number Size or a higher one, vote for a host without ranks, until no
// rank of the job is left. joined is called when all have met.
func Witness(c Config, joined func()) error {
	if c.Rank < c.Size || c.Rank >= c.Size+c.Witnesses {
		return say.Errorf(ErrInvalid, "process %d is not a witness", c.Rank).At("the job has %d ranks and %d witnesses, which come after the ranks", c.Size, c.Witnesses)
	}
	if err := c.witnessed(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	met := false
	err := auto.Witness(ctx, c.transport(), func() { met = true; joined() })
	if err != nil && !met && ctx.Err() != nil {
		return late(ctx, err)
	}
	return err
}

// onDeath is what all ranks must have alike.
func (c *Config) onDeath() string {
	if !c.Continue {
		return ""
	}
	what := "continue"
	if c.Replace {
		what = "replace"
	}
	return fmt.Sprintf("on_death=%s, min_ranks=%d", what, max(1, c.MinRanks))
}

// Join makes this process a rank of the job: it meets the others, which may
// take as long as they need to start, and returns when all are there.
func Join(ctx context.Context, c Config) (*World, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Restart > 0 {
		return rejoin(ctx, c)
	}
	return joinOnce(ctx, c)
}

// joinOnce meets the others, at the present try.
func joinOnce(ctx context.Context, c Config) (*World, error) {
	t, err := auto.Open(ctx, c.transport())
	if err != nil {
		if ctx.Err() != nil {
			return nil, late(ctx, err)
		}
		return nil, err
	}
	w, err := NewWorld(ctx, t, c)
	if err != nil {
		return nil, cmp.Or(err, t.Close())
	}
	return w, nil
}

// late is the error of a start of the job that took too long.
func late(ctx context.Context, err error) error {
	var said *say.Error
	if !errors.As(err, &said) {
		said = &say.Error{What: "the job did not start in time", Where: err.Error()}
	}
	said.Kind, said.Call = ErrTimeout, "malt.init"
	return &core.Timeout{Said: said, Cause: ctx.Err()}
}

// Absent lists the other ranks that no process is at present, as far as can be
// told: for messages while Join waits.
func (c Config) Absent() []int { return auto.Absent(c.transport()) }

// transport is what the layer below needs of c.
func (c Config) transport() auto.Config {
	return auto.Config{
		Rank: c.Rank, Size: c.Size, Witnesses: c.Witnesses,
		Store: c.Store, StoreFD: c.StoreFD, Token: c.Token,
		Encrypt: c.Encrypt, Interface: c.Interface, Congestion: c.Congestion, Fabric: c.Fabric, Libfabric: c.Libfabric, Together: c.Together, Unreachable: c.Unreachable, Survives: c.Continue, Version: c.Version, Transport: c.Transport, Try: c.try,
		Report: c.Report,
	}
}
