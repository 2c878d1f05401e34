package message

import (
	"slices"
	"strings"
)

// isSignal reports whether s names a signal of Linux, with or without SIG and in
// any case (signal(7)).
func isSignal(s string) bool {
	return slices.Contains([]string{
		"HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
		"CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
	}, strings.TrimPrefix(strings.ToUpper(s), "SIG"))
}
