package auto

import (
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

// carrier is what brings payload to other hosts; nil: the connections do, as with "", since no job has used
// a device that is not emulated. One that was named is there, or an error says why not.
func (c *Config) carrier() (fabric.Carrier, error) {
	if c.Fabric == "" {
		return nil, nil
	}
	named := c.Fabric != "auto" && c.Fabric != "off"
	if c.Encrypt == EncryptAlways {
		if named {
			return nil, say.Errorf(rdma.ErrConfig, "MALT_ENCRYPT=1 and MALT_FABRIC=%.40s: what goes by RDMA is not encrypted", c.Fabric).
				Try("Leave one of them out.")
		}
		return nil, nil
	}
	f, err := Fabric(c.Fabric, c.Libfabric, c.Size)
	if err != nil && named {
		return nil, say.Errorf(rdma.ErrConfig, "MALT_FABRIC=%.40s cannot be used: %v", c.Fabric, err).Try("`malt doctor` looks at it; MALT_FABRIC=off does without RDMA.")
	} else if err != nil {
		return nil, nil
	}
	return f, nil
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
