// Package config reads the configuration and the policy files.
//
// It is strict: an unknown key is an error with file, line and column.
package config
