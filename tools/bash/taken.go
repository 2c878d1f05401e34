package bash

import (
	"fmt"
	"strings"

	"github.com/toold/toold/sandbox/guard"
	"github.com/toold/toold/tools"
)

// addTaken tells in a result what appeared while the call ran and may not.
func addTaken(r *tools.Result, incidents []guard.Incident) {
	if len(incidents) == 0 {
		return
	}
	const shown = 10
	var lines []string
	for _, i := range incidents[:min(len(incidents), shown)] {
		lines = append(lines, incidentLine(i))
	}
	if more := len(incidents) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("So it went with %d more.", more))
	}
	lines = append(lines, "Commands may not make what other programs run or obey (sandbox.protect in the configuration). Where it is needed, use write_file: the user is asked.")
	r.IsError = true
	r.Text = strings.TrimPrefix(r.Text+"\n"+strings.Join(lines, "\n"), "\n")
}

// incidentLine says what became of one file.
func incidentLine(i guard.Incident) string {
	path := tools.Visible(i.Path)
	what := fmt.Sprintf("%s appeared while this call ran: %s.", path, tools.Visible(i.Why))
	switch {
	case i.Err != nil:
		return fmt.Sprintf("%s It could not be taken away (%v): tell the user to look at it.", what, i.Err)
	case i.Kept == "":
		return what + " It is still there: tell the user to look at it."
	}
	return fmt.Sprintf("%s It was taken away and is kept in %s.", what, i.Kept)
}
