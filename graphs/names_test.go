package graphs

import (
	"slices"
	"strings"
	"testing"
)

func TestUnknownNameNamesTheNearest(t *testing.T) {
	for name, want := range map[string]string{
		"haltn":                "halton",
		"HALTON":               "halton",
		" halton ":             "halton",
		"halton_paper":         "halton-paper",
		"one_peer":             "one-peer",
		"onepeer":              "one-peer",
		"hypercub":             "hypercube",
		"rnig":                 "ring",
		"exponential":          "chord",
		"parameter-server":     "star",
		"fully_connected":      "all",
		"one-peer-exponential": "one-peer",
		"circle":               "ring",
		"custom":               "lists",
		"list":                 "lists",
		"rand":                 "random",
		"ALL":                  "all",
	} {
		_, err := Parse(name, 4)
		wantError(t, err, "Did you mean \""+want+"\"?", "it is one of all, ring, chord")
	}
	for _, name := range []string{"", "zzzzzz", "2"} {
		_, err := Parse(name, 4)
		wantError(t, err, "is not known", "it is one of all, ring, chord")
		if strings.Contains(err.Error(), "Did you mean") {
			t.Errorf("nothing is like %q, yet: %v", name, err)
		}
	}
	_, err := Parse(strings.Repeat("x", 1<<20), 4)
	wantError(t, err, `xxx" is not known`)
	if len(err.Error()) > 400 {
		t.Errorf("an absurd name makes an error of %d bytes", len(err.Error()))
	}
}

func TestEveryNameParsesAndMeansItself(t *testing.T) {
	arguments := map[string]string{"random": ":2", "lists": ":1/2/3/0"}
	for _, name := range Names() {
		spec := name + arguments[name]
		if got := parse(t, spec, 4).String(); got != spec {
			t.Errorf("%s is called %s", spec, got)
		}
	}
	if !slices.Contains(Names(), "halton") {
		t.Errorf("Names misses halton: %v", Names())
	}
}

func TestArguments(t *testing.T) {
	for spec, parts := range map[string][]string{
		"ring:3":                      {`ring takes no argument, got "3"`, "Write ring alone"},
		"all:":                        {"all takes no argument"},
		"random":                      {"random needs an argument", "random:K"},
		"lists":                       {"lists needs an argument", "lists:1,2/2/0"},
		"random:":                     {`"" is not a number of receivers`, "K from 1 to 3"},
		"random:0":                    {`"0" is not a number of receivers`, "K from 1 to 3"},
		"random:-2":                   {`"-2"`},
		"random:two":                  {`"two"`},
		"random:4":                    {"needs 4 other ranks", "with 4 ranks each has 3", "random:3 or all"},
		"random:2:":                   {`seed ""`, "random:2:1"},
		"random:2:-1":                 {`seed "-1"`},
		"random:2:x":                  {`seed "x"`},
		"random:2:1:":                 {`seed "1:"`},
		"random:99999999999999999999": {"99999999999999999999"},
	} {
		_, err := Parse(spec, 4)
		wantError(t, err, parts...)
	}
}
