package config

// Purpose is what a configuration is read for. It decides what becomes of findings
// that would make running calls unsafe, such as a state directory that they could
// write.
type Purpose int

// The purposes.
const (
	RunCalls    Purpose = iota // by a daemon: they are faults
	JudgeCalls                 // nothing runs: they are warnings
	ReachDaemon                // whose calls have a workspace of its own: none is looked at, and Config has none
)

// unsafe tells what would make running calls unsafe.
func (l *loader) unsafe(at scalar, format string, args ...any) {
	switch l.purpose {
	case ReachDaemon:
	case JudgeCalls:
		l.warn("no call could run so: "+format, args...)
	default:
		l.fail(at, format, args...)
	}
}
