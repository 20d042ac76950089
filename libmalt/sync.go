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
		v, done, err := o.average.step()
		if err != nil || v != throughBoxes {
			return done, err
		}
		o.stage = scatters
	}
	if o.stage == scatters {
		done, err := o.v.scattering.step()
		if !done || err != nil {
			return false, err
		}
		o.stage = gathers
		if err := o.v.gathering.begin(&o.v.Segment); err != nil {
			return false, err
		}
	}
	return o.v.gathering.step()
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

// giveUp turns an average that has not begun yet into a scatter.
func (o *syncing) giveUp() {
	if o.stage == averages {
		if o.average.leave() == directly {
			o.average.finish()
			return
		}
		o.stage = scatters
		_, _ = o.v.scattering.step() // nobody is there to hear how it went
		return
	}
	o.current().giveUp()
}
