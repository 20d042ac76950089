package auto

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/fabric"
	"malt/rdma/ofi"
)

// Fabric opens a carrier of payload between so many ranks: none with "off"; a provider of libfabric; with
// "" or "auto" that of InfiniBand and RoCE, if the machine has a device. path is the library of libfabric;
// "": as the system finds it. Where there is no device, none is loaded.
func Fabric(wanted, path string, ranks int) (fabric.Carrier, error) {
	provider, err := choose(wanted, os.DirFS("/sys/class/infiniband"))
	if err != nil {
		return nil, err
	}
	return ofi.Open(provider, path, ranks)
}

// carrier is what brings payload to other hosts; none says why there is none, as with "", since no job has used
// a device that is not emulated. One that was named is there, or err says why not.
func (c *Config) carrier() (f fabric.Carrier, named bool, none, err error) {
	switch {
	case c.Fabric == "":
		none = fabric.ErrOff
	case c.Encrypt == EncryptAlways:
		none = fmt.Errorf("%w: MALT_ENCRYPT=1, and what goes by RDMA is not encrypted", fabric.ErrEncrypted)
	default:
		f, none = Fabric(c.Fabric, c.Libfabric, c.Size)
	}
	if named = c.Fabric != "" && c.Fabric != "auto" && c.Fabric != "off"; named && none != nil {
		do := "`malt doctor` looks at it; MALT_FABRIC=off does without RDMA."
		if errors.Is(none, fabric.ErrEncrypted) {
			do = "MALT_FABRIC=off does without RDMA, MALT_ENCRYPT=0 without encryption."
		}
		err = say.Errorf(rdma.ErrConfig, "MALT_FABRIC=%.40s cannot be used: %v", c.Fabric, none).Try("%s", do)
	}
	return f, named, none, err
}

func choose(wanted string, devices fs.FS) (provider string, err error) {
	switch wanted {
	case "off":
		return "", fabric.ErrOff
	case "", "auto":
		if list, _ := fs.ReadDir(devices, "."); len(list) == 0 {
			return "", fabric.ErrNoDevice
		}
		return "verbs;ofi_rxm", nil
	}
	return wanted, nil
}
