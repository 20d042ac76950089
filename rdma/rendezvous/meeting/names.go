package meeting

// What a rank is told, as who starts ranks by hand calls it, and who does so by
// malt run.
const (
	theStore = "MALT_STORE, malt run --store"
	theRank  = "MALT_RANK, malt run --node-rank"
	theSize  = "MALT_SIZE, malt run -n and --nodes"
)

// ToCome is what to look at where ranks do not come, for messages.
const ToCome = "Start every rank, with the same store (" + theStore + ") and its own number (" + theRank + ", with the same -n everywhere)."
