//go:build linux

package suite

import (
	"context"
	"regexp"
	"time"
)

// Patience bounds every wait of a case that has no limit of its own.
const Patience = 4 * time.Minute

// Elapse lets time pass.
func Elapse(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Within looks again and again until something is so, or the time is over: for
// what the kernel does not report.
func Within(limit time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for !done() {
		if Elapse(ctx, 10*time.Millisecond) != nil {
			return done()
		}
	}
	return true
}

// announcement is what a script prints when it has prepared itself for what comes:
// an echo of a plain word, which is in no trap.
var announcement = regexp.MustCompile(`(?:^|[;&] *)echo ([a-z]+)(?:;|$)`)

// quotedWord is what a script quotes.
var quotedWord = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// Announcement is the word that a script prints when it has prepared itself for what
// comes, "" if it prints none.
func Announcement(script string) string {
	found := announcement.FindStringSubmatch(quotedWord.ReplaceAllString(script, "''"))
	if found == nil {
		return ""
	}
	return found[1]
}
