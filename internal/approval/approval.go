// Package approval holds the calls that wait for a person.
//
// It does not know what a call is: a request is something to show and a
// deadline, an answer is yes or no with a reason.
package approval
