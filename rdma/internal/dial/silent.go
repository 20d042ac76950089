package dial

import (
	"fmt"
	"strings"
	"time"
)

// Silent is why a rank is dead whose host has given no sign of life for so long, at
// the addresses where it was.
func Silent(limit time.Duration, at ...string) error {
	return fmt.Errorf("its host has not answered for %v at %s: it is off, or the network between is cut (MALT_UNREACHABLE sets for how long a host may be silent)", limit, strings.Join(at, ", "))
}
