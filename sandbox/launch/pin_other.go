//go:build !linux

package launch

import "os"

// Pin returns ErrUnavailable: only Linux can open a path without following links (openat2(2)).
func Pin(string) (held *os.File, is string, err error) { return nil, "", unsupported() }
