//go:build linux

package suite

import (
	"context"
	"time"

	"github.com/toold/toold/internal/lazyregexp"
)

// Patience bounds every wait of a case that has no limit of its own.
const Patience = 4 * time.Minute

// Sleep lets time pass.
func Sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Poll calls done every 10 ms until it returns true or limit is over.
func Poll(limit time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for !done() {
		if Sleep(ctx, 10*time.Millisecond) != nil {
			return done()
		}
	}
	return true
}

// announcement finds an echo of a plain word, which is in no trap.
var announcement = lazyregexp.New(`(?:^|[;&] *)echo ([a-z]+)(?:;|$)`)

var quotedWord = lazyregexp.New(`'[^']*'|"[^"]*"`)

// Announcement is the word that a script prints when it is ready for signals or a cancel, "" if it prints none.
func Announcement(script string) string {
	found := announcement().FindStringSubmatch(quotedWord().ReplaceAllString(script, "''"))
	if found == nil {
		return ""
	}
	return found[1]
}
