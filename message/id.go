package message

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// NewID returns prefix, a hyphen and a UUID of version 7 (RFC 9562), for example
// "message-0192…"; with an empty prefix the UUID alone. Ids sort by their time, so
// new ones are adjacent in an index.
func NewID(prefix string) string {
	var u [16]byte
	rand.Read(u[6:]) // never fails: it ends the program instead
	ms := time.Now().UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = u[6]&0x0f | 0x70
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
