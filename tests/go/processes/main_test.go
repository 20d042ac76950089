// Package processes holds the tests that need real processes: random schedules
// of ranks that are stopped, continued, killed and leave, over shared memory and
// between simulated hosts whose cables are lossy, slow and cut, and the claims of
// the papers that only processes can show.
//
// The test binary runs itself anew as each rank: TestMain looks at the
// environment, and a rank runs the program named there instead of the tests.
// The tests' side of a job is in job_test.go, the ranks' side in rank_test.go.
//
// Of a job that goes on when ranks die each rank writes notes into memory of the test, and
// the test judges what the survivors did, with the notes of the dead: survivor_test.go is
// the ranks' side of that, survive_judge_test.go the judge.
//
//	go test ./tests/go/processes                       # 200 schedules, and 200 that ranks survive
//	MALT_SOAK=10m go test -timeout 0 -v -run Soak ./tests/go/processes
//	MALT_SEED=17 go test -v -run 'Replay$' ./tests/go/processes
//
// Hosts come from tests/net/beside.py, which make test-net puts beside these tests;
// what needs them is skipped without.
package processes

import (
	"os"
	"testing"
)

// programs are what a rank can run, by name.
var programs = map[string]func(*rank) error{
	"schedule": runSchedule,
	"intruder": runIntruder,
	"claim":    runClaim,
	"witness":  runWitness,
}

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		os.Exit(rankMain())
	}
	os.Exit(m.Run())
}
