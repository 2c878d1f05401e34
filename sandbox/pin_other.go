//go:build !linux

package sandbox

import "os"

// Pin refuses: errors.Is finds ErrUnavailable. Only Linux can open a path without
// following a link anywhere in it (openat2(2)).
func Pin(string) (held *os.File, is string, err error) { return nil, "", Unsupported() }
