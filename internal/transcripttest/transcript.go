// Package transcripttest replays what a value decides, kept as text: lines behind ">" say what
// happens, those below what comes of it. Lines that begin with "#" are comments.
package transcripttest

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the transcript again; read the difference before it is committed")

// Play has play write what comes of each line, and compares that with the file.
func Play(t *testing.T, file string, play func(to *strings.Builder, said string)) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		said, happens := strings.CutPrefix(line, "> ")
		if happens || strings.HasPrefix(line, "#") || line == "\n" {
			got.WriteString(line)
		}
		if happens {
			play(&got, strings.TrimSpace(said))
		}
	}
	if *rewrite {
		err = os.WriteFile(file, []byte(got.String()), 0o600)
	}
	if err != nil || !*rewrite && got.String() != string(want) {
		t.Errorf("%v; with -rewrite %s becomes\n%s", err, file, &got)
	}
}
