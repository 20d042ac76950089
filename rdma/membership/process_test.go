package membership

import (
	"runtime"
	"time"
)

// process is a rank.
type process struct {
	w       *world
	rank    int
	host    int
	m       *Members
	onDeath func() // m looks
	alive   bool
	since   time.Time // of its death
	off     bool      // its host is, too: nobody refuses for it
	left    bool
	cont    chan struct{} // not nil: stopped until it is closed
	steps   int           // what it has done to its page and the network
	at      int           // before that step, happens
	then    func(*process)
	gone    map[int]bool // ranks that it knows to be
	closed  []bool       // links, by peer
	held    []func()     // what landed while it was stopped
}

// after has something happen to a rank before it does so many steps more.
func (p *process) after(steps int, then func(*process)) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.at, p.then = p.steps+1+steps, then
}

// happened tells whether that has.
func (p *process) happened() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.then == nil
}

// step is passed before everything that a rank does to its page and the network.
func (p *process) step() {
	p.w.mu.Lock()
	p.steps++
	if p.then != nil && p.steps == p.at {
		then := p.then
		p.then = nil
		p.w.mu.Unlock()
		then(p)
		p.w.mu.Lock()
	}
	for p.alive && p.cont != nil {
		cont := p.cont
		p.w.mu.Unlock()
		<-cont
		p.w.mu.Lock()
	}
	alive := p.alive
	p.w.mu.Unlock()
	if !alive {
		runtime.Goexit()
	}
}

// kill ends a rank. The others of its host learn of it at once, as from the kernel.
func (p *process) kill() {
	p.w.mu.Lock()
	if !p.alive {
		p.w.mu.Unlock()
		return
	}
	p.alive, p.since = false, time.Now()
	cont := p.cont
	p.cont, p.held = nil, nil
	p.w.mu.Unlock()
	if cont != nil {
		close(cont)
	}
	for _, o := range p.w.ranks {
		if o.host == p.host {
			o.onDeath()
		}
	}
}

func (p *process) stop() {
	p.w.mu.Lock()
	if p.alive && p.cont == nil {
		p.cont = make(chan struct{})
	}
	p.w.mu.Unlock()
}

func (p *process) resume() {
	p.w.mu.Lock()
	cont, held := p.cont, p.held
	p.cont, p.held = nil, nil
	p.w.mu.Unlock()
	if cont != nil {
		close(cont)
	}
	for _, land := range held {
		land()
	}
}

// runs: it is not dead, and not stopped.
func (p *process) runs() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.alive && p.cont == nil
}
