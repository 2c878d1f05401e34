//go:build !linux

package sandbox

import "context"

// CacheStores lists none.
func CacheStores(string) ([]CacheStore, error) { return nil, nil }

// RemoveCacheStore removes none.
func RemoveCacheStore(string) (bool, error) { return false, nil }

// OpenCaches gives none: without a sandbox calls use the machine's own caches.
func OpenCaches(context.Context, string, []Cache) (*Caches, error) { return nil, nil }

// Limit does nothing.
func (c *Caches) Limit(context.Context, int64) error { return nil }
