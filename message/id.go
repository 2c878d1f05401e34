package message

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID returns prefix, a hyphen and a random UUID (RFC 9562, version 4): for
// example "message-5f3c…". An empty prefix gives the UUID alone.
func NewID(prefix string) string {
	var u [16]byte
	rand.Read(u[:]) // never fails: it ends the program instead
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	var b [36]byte
	for i, at := range []int{0, 9, 14, 19, 24} {
		from := []int{0, 4, 6, 8, 10, 16}
		hex.Encode(b[at:], u[from[i]:from[i+1]])
		if i > 0 {
			b[at-1] = '-'
		}
	}
	if prefix == "" {
		return string(b[:])
	}
	return prefix + "-" + string(b[:])
}
