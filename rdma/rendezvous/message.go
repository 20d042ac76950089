package rendezvous

import (
	"encoding/json"
	"errors"

	"malt/internal/say"
)

// A connection carries one request and one reply, in JSON, each behind its length in four
// bytes, little-endian; descriptors ride on the first bytes of the reply. When the client has
// mapped them it sends one byte, which lets the server forget its copy. Either end that dies,
// stops or breaks off in between leaves the other with a broken connection, which means
// nothing: the client asks again unless the peer's state is final, the server keeps its copy.
const (
	maxMessage = 256 << 10
	maxString  = 16 << 10 // so that two fit a message, even where JSON needs six bytes for one
	maxFiles   = 8

	protocol = 4
)

// What a request wants.
const (
	wantPage   = 1 // the control page; the first member has it
	wantRegion = 2 // the memory announced under a name
	wantBack   = 3 // to take the place of a rank that has died: again.go
)

// request is what a client sends. Token and name may be any bytes.
type request struct {
	Version uint16
	Kind    uint16
	Rank    uint32 // who asks
	Size    uint32 // the job's size as far as the client knows
	Pid     uint32 // of the client, as it sees itself
	Token   []byte
	Name    []byte
}

// reply is what it gets. Descriptors come beside it, as many as sizes.
type reply struct {
	Refused string `json:",omitempty"` // why not, a packed say.Error; "" with everything else filled in
	Text    string `json:",omitempty"` // the announcement's
	Readers []int  `json:",omitempty"` // the announcement's
	Sizes   []int  `json:",omitempty"` // of the memory behind each descriptor
	Try     uint64 `json:",omitempty"` // to take a place in; 0: none
}

// refusal is the reply that says why.
func refusal(why error) *reply {
	e := say.Of(why)
	return &reply{Refused: e.Pack()}
}

var errMessage = errors.New("malformed message")

func encode[M request | reply](m *M) []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // nothing in a message can fail
	}
	return b
}

func decode[M request | reply](b []byte) (m M, err error) {
	if err = json.Unmarshal(b, &m); err != nil {
		err = say.Errorf(errMessage, "malformed message: %v", err).Try("All ranks must use the same version of MALT.")
	}
	return m, err
}
