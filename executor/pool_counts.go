package executor

// PoolCounts is what a Pool has done since it was made.
type PoolCounts struct {
	Hits    int64 // calls for which a shell waited
	Started int64 // sandboxes started for calls for which none did
	Ahead   int64 // sandboxes started before there was a call for them
	Waiting int64 // shells that wait now
	Idle    int64 // helpers that wait for another call
}
