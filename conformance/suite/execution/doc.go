// Package execution has the cases that run commands and look at what becomes of them: streams,
// exit codes, signals, time limits, processes left behind.
package execution
