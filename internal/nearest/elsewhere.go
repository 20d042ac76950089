package nearest

// elsewhere holds what other systems and papers call what MALT has, by MALT's own word. A hint is all
// that comes of it: each thing has one name here.
var elsewhere = map[string][]string{
	// graphs
	"all": {"full", "complete", "fully-connected", "all-to-all", "alltoall", "mesh", "dense", "all-reduce",
		"allreduce", "ring-allreduce", "ring-all-reduce"}, // a ring is how these move bytes: every rank gets every other's
	"chord":     {"exponential", "exp", "expander"},
	"star":      {"parameter-server", "ps", "server", "hub"},
	"ring":      {"cycle", "circle"},
	"one-peer":  {"one-peer-exponential", "dynamic"},
	"hypercube": {"cube"},
	"lists":     {"custom", "list", "edges"},

	// consistencies
	"bsp": {"sync", "synchronous", "synchronized", "synchronised", "bulk", "bulk-synchronous", "bulk-synchronous-parallel",
		"lockstep", "lock-step", "barrier", "blocking", "strict"},
	"async":      {"asp", "asynchronous", "hogwild", "asynchronous-parallel", "nonblocking", "non-blocking", "eventual"},
	"ssp":        {"stale", "staleness", "stale-synchronous", "stale-synchronous-parallel", "bounded", "bounded-staleness"},
	"notify-ack": {"ack", "notify"},

	// folds
	"mean":    {"avg", "average"},
	"sum":     {"add", "plus", "total"},
	"min":     {"minimum", "amin"},
	"max":     {"maximum", "amax"},
	"replace": {"overwrite", "assign", "copy", "last", "latest"},

	// what travels, and what a vector starts with
	"model":    {"weight", "weights", "parameters", "params"},
	"gradient": {"gradients", "grad", "grads"},
	"params":   {"model", "weights", "parameters"},
	"grads":    {"gradient", "gradients"},
	"same":     {"root", "broadcast", "equal", "rank0"},
	"own":      {"local", "private", "own-values", "different"},

	"exact": {"float32", "fp32", "full", "none", "false"},
	"bf16":  {"bfloat16"},
	"f16":   {"float16", "fp16", "half"},
	"int8":  {"fp8", "8bit", "q8", "uint8"},

	// who gets which rows
	"stride":  {"strided", "interleaved", "cyclic", "round-robin"},
	"block":   {"blocks", "contiguous", "chunk", "chunks"},
	"shuffle": {"random", "permutation"},

	// formats of a picture
	"png": {"jpg", "jpeg", "gif"},

	// options
	"graph":       {"topology", "network", "dataflow"},
	"consistency": {"staleness", "slack", "mode", "synchronization"},
	"fold":        {"op", "reduce", "reduction", "reduce-op", "average", "combine"},
	"op":          {"fold", "reduce", "reduction", "reduce-op", "average", "operation"},
	"every":       {"period", "interval", "frequency", "cb-size", "local-steps", "backward-passes-per-step"},
	"n":           {"np", "nprocs", "nproc", "num-proc", "world-size", "size", "ranks"},
	"-n":          {"np", "nprocs", "nproc", "nproc-per-node", "num-proc", "world-size", "ranks"},
	"root":        {"root-rank", "src", "source"},
	"wire":        {"compression", "fp16-compression", "compress", "wire-format"},
}
