package auto

import (
	"io/fs"
	"os"

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
