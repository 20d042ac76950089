package processes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"malt/libmalt"
)

// The environment by which the test tells a rank what it is.
const (
	envProgram = "MALT_TEST_PROGRAM"
	envSetting = "MALT_TEST_SETTING"
)

// Descriptors that a rank inherits, after the standard ones.
const (
	fdReports = 3 + iota
	fdPage
)

// setting is all that a rank is told.
type setting struct {
	Config  libmalt.Config
	Program string
	Args    json.RawMessage // the program's own
}

// rank is the ranks' side of a job.
type rank struct {
	setting
	page    page
	reports *json.Encoder
	orders  *bufio.Reader
}

// rankMain is main of a rank.
func rankMain() int {
	r := &rank{orders: bufio.NewReader(os.Stdin), reports: json.NewEncoder(os.NewFile(fdReports, "reports"))}
	err := json.Unmarshal([]byte(os.Getenv(envSetting)), &r.setting)
	if err == nil {
		f := os.NewFile(fdPage, "page")
		r.page, err = openPage(f)
		f.Close()
	}
	if err == nil {
		err = programs[os.Getenv(envProgram)](r)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "rank %d: %v\n", r.Config.Rank, err)
		return 1
	}
	return 0
}

// runWitness votes for a host without ranks.
func runWitness(r *rank) error {
	r.Config.Continue, r.Config.Timeout = true, patience
	return libmalt.Witness(r.Config, func() {})
}

// args decodes what the test passed to the program.
func (r *rank) args(into any) error { return json.Unmarshal(r.Args, into) }

// set writes one of this rank's words on the page.
func (r *rank) set(w word, v int) { r.page.at(r.Config.Rank, w).Store(int64(v)) }

// report sends a message to the test.
func (r *rank) report(v any) error { return r.reports.Encode(v) }

// order waits for the test's next word. It fails when the test has ended.
func (r *rank) order() (string, error) {
	text, err := r.orders.ReadString('\n')
	return strings.TrimSpace(text), err
}
