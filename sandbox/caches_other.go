//go:build !linux

package sandbox

import "context"

// CacheStores returns none.
func CacheStores(string) ([]CacheStore, error) { return nil, nil }

// RemoveCacheStore does nothing.
func RemoveCacheStore(string) (bool, error) { return false, nil }

// OpenCaches returns nil: without a sandbox calls use the machine's caches.
func OpenCaches(context.Context, string, []Cache) (*Caches, error) { return nil, nil }

// Limit does nothing.
func (c *Caches) Limit(context.Context, int64) error { return nil }
