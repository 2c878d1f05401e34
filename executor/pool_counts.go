package executor

// PoolCounts counts what a Pool has done.
type PoolCounts struct {
	Hits    int64 // calls that used a warm shell
	Started int64 // sandboxes started for calls without one
	Ahead   int64 // sandboxes started ahead of calls
	Waiting int64 // warm shells now
	Idle    int64 // helpers that wait for another call
}
