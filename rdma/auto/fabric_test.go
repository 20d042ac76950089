package auto

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"malt/rdma"
	"malt/rdma/fabric"
)

func TestChoiceOfFabric(t *testing.T) {
	none, some := fstest.MapFS{}, fstest.MapFS{"mlx5_0/node_type": {}}
	for _, c := range []struct {
		wanted   string
		devices  fstest.MapFS
		provider string
		err      error
	}{
		{"off", some, "", fabric.ErrOff},
		{"auto", none, "", fabric.ErrNoDevice},
		{"", none, "", fabric.ErrNoDevice},
		{"auto", some, "verbs;ofi_rxm", nil},
		{"", some, "verbs;ofi_rxm", nil},
		{"efa", none, "efa", nil},
	} {
		if provider, err := choose(c.wanted, c.devices); provider != c.provider || err != c.err {
			t.Errorf("%q with %d devices: %q, %v", c.wanted, len(c.devices), provider, err)
		}
	}
}

// Without a device or a name no library is loaded.
func TestFabricIsNotLoaded(t *testing.T) {
	for _, wanted := range []string{"off", "auto"} {
		c, err := Fabric(wanted, "", 2)
		if err == nil {
			c.Close()
			t.Skip("this machine has an RDMA device")
		} else if !errors.Is(err, fabric.ErrOff) && !errors.Is(err, fabric.ErrNoDevice) {
			t.Error(err)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || strings.Contains(string(maps), "libfabric") {
		t.Errorf("libfabric is mapped; %v", err)
	}
}

// TestNamedFabricThatCannotBe: the error says what to do about its reason.
func TestNamedFabricThatCannotBe(t *testing.T) {
	named := func(c Config) string {
		c.Fabric, c.Size = "tcp;ofi_rxm", 2
		_, _, _, err := c.carrier()
		if !errors.Is(err, rdma.ErrConfig) {
			t.Fatal(err)
		}
		return err.Error()
	}
	if text := named(Config{Encrypt: EncryptAlways}); !strings.Contains(text, "MALT_ENCRYPT=0 without encryption") {
		t.Error(text)
	}
	if text := named(Config{Libfabric: "/nowhere/libfabric.so"}); !strings.Contains(text, "/nowhere/libfabric.so") || !strings.Contains(text, "malt doctor") {
		t.Error(text)
	}
}
