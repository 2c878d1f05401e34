package main

import (
	"fmt"
	"strings"

	"github.com/toold/toold/message"
)

// wideningFlags are the flags of `toold approve` that a waiting call may be given.
func wideningFlags(may *message.MayWiden) (flags []string) {
	if may == nil {
		return nil
	}
	for _, list := range []struct {
		flag   string
		values []string
		each   string // of the values, what may stand instead
	}{
		{"--profile", may.Profile, ""},
		{"--write", may.Write, " or a folder in it"},
		{"--network", may.Network, ""},
		{"--host", may.Host, ""},
	} {
		for _, value := range list.values {
			if list.flag == "--host" && value == "*" {
				value = "NAME"
			}
			flags = append(flags, list.flag+" "+oneLine(value)+list.each)
		}
	}
	return flags
}

// bullets are lines, each with a mark.
func bullets(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "  - %s\n", oneLine(line))
	}
	return b.String()
}
