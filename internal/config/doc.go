// Package config reads the configuration and the policy files.
//
// It is strict: what it does not know is an error that names file, line and
// column, never a setting that is ignored. It decides nothing and opens no
// sockets.
package config
