package libmalt

import "malt/internal/nearest"

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
		return dense, failf(ErrInvalid, "sparse=%s: say what a row that does not travel means: with sparse=model the rows that changed travel and the others keep their value; with sparse=gradient the rows that are not zero travel and the others count as zero", s)
	}
	hint := ""
	if near := nearest.Word(s, []string{"model", "gradient", "false"}); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return dense, failf(ErrInvalid, "sparse=%s: model, gradient or false is expected%s", s, hint)
}
