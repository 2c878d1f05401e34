//go:build !linux

package caches

import "context"

// Stores returns none.
func Stores(string) ([]Store, error) { return nil, nil }

// InUse is false.
func (Store) InUse() bool { return false }

// RemoveStore does nothing.
func RemoveStore(string) (bool, error) { return false, nil }

// Open returns nil: without a sandbox calls use the machine's caches.
func Open(context.Context, Mounter, string, []Cache) (*Set, error) { return nil, nil }

// Limit does nothing.
func (c *Set) Limit(context.Context, int64) error { return nil }
