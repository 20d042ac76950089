package libmalt

// syncing is an average in place on its way, or a scatter and then a gather.
type syncing struct {
	v       *Vector
	stage   int
	average averaging
}

// Stages of a syncing.
const (
	averages = iota
	scatters
	gathers
)

func (o *syncing) begin(v *Vector, rows []int64, weight float64) error {
	*o = syncing{v: v, stage: scatters, average: o.average}
	// What a scatter refuses is refused in place, too.
	err := v.scattering.begin(&v.Segment, len(v.data), rows, nil, weight)
	if err == nil && v.inPlace(v.mode.fold) {
		o.stage = averages
		o.average.begin(v, v.mode.fold, weight)
	}
	return err
}

func (o *syncing) step() (bool, error) {
	if o.stage == averages {
		if done := o.average.step(); !done || o.average.verdict == directly {
			return done, nil
		}
		o.stage = scatters
	}
	if o.stage == scatters {
		if err := o.scatter(); err != nil || o.stage == scatters {
			return false, err
		}
	}
	return o.v.gathering.step()
}

// scatter goes on to the gather, unless it has to wait.
func (o *syncing) scatter() error {
	done, err := o.v.scattering.step()
	if !done || err != nil {
		return err
	}
	o.stage = gathers
	return o.v.gathering.begin(&o.v.Segment)
}

func (o *syncing) current() stepper {
	if o.stage == gathers {
		return &o.v.gathering
	}
	return &o.v.scattering
}

func (o *syncing) waiting() string {
	if o.stage == averages {
		return o.average.waiting()
	}
	return o.current().waiting()
}

func (o *syncing) suspend() {
	if o.stage == averages {
		o.average.watch.end(&o.v.Segment)
		return
	}
	o.current().suspend()
}

// goAway is called when a sync keeps its place and the rank enters a collective
// call: nobody may wait for it then. So what it has to send, or to fold, comes now.
func (o *syncing) goAway() {
	if o.stage != averages {
		return
	}
	if o.average.settle(throughBoxes); o.average.verdict == throughBoxes {
		o.stage = scatters
		_ = o.scatter() // what fails is tried again, and told, by the sync
	}
}

func (o *syncing) giveUp() {
	if o.stage == averages {
		if o.average.leave(); o.average.verdict == directly {
			return
		}
		o.stage = scatters
		_ = o.scatter() // nobody is there to hear how it went
	}
	o.current().giveUp()
}
