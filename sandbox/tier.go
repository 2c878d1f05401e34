package sandbox

// Tier is the set of layers of the sandbox that confine a call. The zero value is all of them.
type Tier int

const (
	TierA Tier = iota // every layer
	// TierBwrap is TierA with namespaces created by bwrap(1), for machines on which only bwrap may create them, as
	// with Ubuntu's AppArmor. launch.Choose reports what it lacks.
	TierBwrap
	// TierB is for machines on which a namespace cannot mount a new /proc, such as most containers: calls see the
	// machine's processes and their command lines. They cannot signal, trace or change any but their own.
	TierB
	// TierC is for machines without user namespaces. Only Landlock and seccomp confine a call; launch.Choose reports
	// what is lost. It is not for root, which could change the mode of every file.
	TierC
)

// String returns the name used in reports.
func (t Tier) String() string { return [...]string{"A", "A-bwrap", "B", "C"}[t] }
