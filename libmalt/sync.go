package libmalt

// syncing is an average in place or across hosts on its way, or a scatter and then a
// gather.
type syncing struct {
	v        *Vector
	stage    int
	average  averaging
	exchange exchanging
}

// Stages of a syncing.
const (
	averages = iota
	exchanges
	scatters
	gathers
)

func (o *syncing) begin(v *Vector, rows []int64, weight float64) error {
	*o = syncing{v: v, stage: scatters, average: o.average, exchange: o.exchange}
	// What a scatter refuses is refused in place, too.
	err := v.scattering.begin(&v.Segment, len(v.data), rows, nil, weight)
	switch {
	case err != nil:
	case v.inPlace(v.mode.fold):
		o.stage = averages
		o.average.begin(v, v.mode.fold, weight)
	case v.across != nil && v.ch.everyone && sameOnAll(v.mode.fold):
		o.stage = exchanges
		o.exchange.begin(v, v.mode.fold, weight)
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
	if o.stage == exchanges {
		done, err := o.exchange.step()
		switch {
		case err != nil:
			_ = o.exchange.leave() // there is an error to tell already
			return false, err
		case done:
			o.v.averaged()
			return true, nil
		case !o.exchange.boxes:
			return false, nil
		}
		if err := o.contribute(); err != nil {
			return false, err
		}
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

// contribute goes on to the gather with what is in the boxes.
func (o *syncing) contribute() error {
	err := o.exchange.contribute()
	if err == nil {
		o.v.averagedAt = 0
		o.stage = gathers
		err = o.v.gathering.begin(&o.v.Segment)
	}
	return err
}

func (o *syncing) current() stepper {
	if o.stage == gathers {
		return &o.v.gathering
	}
	return &o.v.scattering
}

func (o *syncing) call() string { return o.v.called("sync") }

func (o *syncing) waiting() wait {
	switch o.stage {
	case averages:
		return o.average.waiting()
	case exchanges:
		return o.exchange.waiting()
	}
	w := o.current().waiting()
	w.call = o.call()
	return w
}

func (o *syncing) suspend() {
	switch o.stage {
	case averages:
		o.average.watch.end(&o.v.Segment)
	case exchanges:
		o.exchange.watch.end(&o.v.Segment)
		o.exchange.noted = false
	default:
		o.current().suspend()
	}
}

// goAway is called when a sync keeps its place and the rank enters a collective
// call: nobody may wait for it then. So what it has to send, or to fold, comes now.
func (o *syncing) goAway() {
	if o.stage == exchanges {
		// What fails is tried again, and told, by the sync.
		if err := o.exchange.leave(); err == nil && o.exchange.boxes {
			_ = o.contribute()
		}
	}
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
	if o.stage == exchanges {
		o.exchange.watch.end(&o.v.Segment)
		_ = o.exchange.leave() // neither
		return
	}
	o.current().giveUp()
}
