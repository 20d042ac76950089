package membership

import (
	"time"

	"malt/rdma/vote"
)

// frame is what has landed.
type frame struct {
	peer int
	m    vote.Message
}

// Land takes in a frame from a rank of another host. The error is of one that cannot be. It
// is lost where many wait: senders repeat.
func (m *Members) Land(peer int, k vote.Kind, arg uint32, body []byte) error {
	message, err := m.c.Job.Decode(k, arg, body, m.c.Job.Of[peer], m.host)
	if err != nil {
		return err
	}
	select {
	case m.inbox <- frame{peer, message}:
	default:
	}
	return nil
}

// receive answers a question, or takes in an answer.
func (m *Members) receive(now time.Time, f frame) {
	from := m.c.Job.Of[f.peer]
	m.heard[from] = now
	switch f.m.Kind {
	case vote.Promise, vote.Accepted:
		if m.proposal != nil {
			m.proposal.Heed(f.m, from)
			m.count()
		}
	case vote.Answer:
		m.inquiry.heed(f.m, from)
		m.doom.heed(f.m, from)
	default:
		if answer, ok := m.voter.Answer(f.m, m.see, from); ok {
			m.post(f.peer, answer)
		}
		if f.m.Kind == vote.Decided {
			m.follow()
		}
	}
}

// tell sends a message to some hosts: to each of their ranks, since one may be stopped.
func (m *Members) tell(hosts vote.Set, message vote.Message) {
	v := m.View()
	for host := range hosts.All() {
		for _, rank := range m.on[host] {
			if host != m.host && v.Ranks.Has(rank) && !m.net.Gone(rank) {
				m.post(rank, message)
			}
		}
	}
}

func (m *Members) post(peer int, message vote.Message) {
	m.body = m.c.Job.Append(m.body[:0], message)
	m.net.Post(peer, message.Kind, uint32(message.Verdict), m.body)
}
