//go:build !cgo || !amd64

package reduce

// There are no C kernels here.
func best() path { return pathGo }

func foldC(path, bool, Op, DType, [][]byte, [][]byte, []float64, int, int, int) int {
	panic("reduce: no C kernels in this build")
}

func changeC(path, DType, *changed, float64, bool) {
	panic("reduce: no C kernels in this build")
}

func differC([]uint64, []byte, []byte) {
	panic("reduce: no C kernels in this build")
}
