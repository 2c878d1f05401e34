//go:build !linux

package launch

import "os"

// Pin returns ErrUnavailable: only Linux opens a path without following any link (openat2(2)).
func Pin(string) (held *os.File, is string, err error) { return nil, "", unsupported() }
