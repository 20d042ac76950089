package explore

import (
	"os"
	"testing"
)

// Case runs one case of a test beside its others. Large ones take minutes: MALT_EXPLORE=big asks for them.
func Case(t *testing.T, name string, large bool, run func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		if large && os.Getenv("MALT_EXPLORE") != "big" {
			t.Skip("MALT_EXPLORE=big runs this")
		}
		t.Parallel()
		run(t)
	})
}

// Must fails with what a search has found, and says how much there was to see.
func Must(t *testing.T, r Result) {
	t.Helper()
	if r.Failure != "" || r.GivenUp {
		t.Fatal(r)
	}
	t.Log(r)
}
