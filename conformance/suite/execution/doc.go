// Package execution plays cases that run commands and check their streams, exit codes, signals, time limits and the
// processes left behind.
package execution
