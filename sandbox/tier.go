package sandbox

// Tier is how many layers of the sandbox confine a call. The zero value is all.
type Tier int

const (
	TierA Tier = iota // every layer
	// TierBwrap is TierA with namespaces made by bwrap(1), for machines that let only
	// bwrap make them, as Ubuntu's AppArmor does. It confines as much; launch.Choose says
	// what it lacks.
	TierBwrap
	// TierB is for machines that refuse a new /proc to a namespace, as default
	// containers do: calls see the machine's processes and their command lines. They
	// can neither signal, trace nor change any but their own.
	TierB
	// TierC is for machines without user namespaces, and for ordinary users: root could
	// change the mode of every file. Only Landlock and seccomp confine a call;
	// launch.Choose says what is lost.
	TierC
)

// String returns the name used in reports.
func (t Tier) String() string { return [...]string{"A", "A-bwrap", "B", "C"}[t] }
