package libmalt

import "malt/internal/say"

// representation is what of a vector travels.
type representation uint8

const (
	dense          representation = iota // all of it
	sparseModel                          // the rows that a reader has not read in their present values
	sparseGradient                       // the rows that are not zero
)

func (r representation) String() string {
	return [...]string{dense: "false", sparseModel: "model", sparseGradient: "gradient"}[r]
}

// parseRepresentation is the inverse of String.
func parseRepresentation(s string) (representation, error) {
	switch s {
	case "false", "0":
		return dense, nil
	case "model":
		return sparseModel, nil
	case "gradient":
		return sparseGradient, nil
	case "true", "1":
		return dense, say.Errorf(ErrInvalid, "sparse=%s does not say what a row that does not travel means", s).
			At("model: rows that changed travel, others keep their value; gradient: rows that are not zero, others count as zero").
			Try("Write sparse=model or sparse=gradient.")
	}
	return dense, say.Unknown(ErrInvalid, "sparse", s, "model", "gradient", "false")
}
