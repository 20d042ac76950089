package codec

import (
	"slices"

	"malt/internal/say"
	"malt/libmalt/internal/core"
)

// Kind names a codec: what of a vector travels.
type Kind uint8

const (
	Dense    Kind = iota // all of it
	Model                // the rows that a reader has not read in their present values
	Gradient             // the rows that are not zero
)

var names = []string{Dense: "false", Model: "model", Gradient: "gradient"}

// Names returns the kinds as they are written.
func Names() []string { return slices.Clone(names) }

func (k Kind) String() string { return names[k] }

// Parse is the inverse of String.
func Parse(s string) (Kind, error) {
	switch s {
	case "false", "0":
		return Dense, nil
	case "model":
		return Model, nil
	case "gradient":
		return Gradient, nil
	case "true", "1":
		return Dense, say.Errorf(core.ErrInvalid, "sparse=%s does not say what a missing row means", s).
			At("model: changed rows are sent, others keep their values; gradient: nonzero rows are sent, others count as zero").
			Try("Write sparse=model or sparse=gradient.")
	}
	return Dense, say.Unknown(core.ErrInvalid, "sparse", s, "model", "gradient", "false")
}
