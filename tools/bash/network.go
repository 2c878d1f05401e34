package bash

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/tools"
)

// network carries the connections of one call to where its caller lets them go.
func (v *invocation) network(io tools.IO) *egress.Server {
	o := v.tool.options.Egress
	o.Allow = io.Connect
	if o.Allow == nil {
		o.Allow = func(context.Context, string, []uint16) error {
			return errors.New("nobody decides on connections here")
		}
	}
	return egress.New(o)
}

// withRefusals tells a model which hosts it could not reach, and what governs that.
func withRefusals(r tools.Result, refused []egress.Refusal) tools.Result {
	if len(refused) == 0 {
		return r
	}
	var b strings.Builder
	b.WriteString(r.Text)
	for _, f := range refused {
		host := tools.Visible(f.Host)
		if f.Port != 0 {
			host = fmt.Sprintf("%s:%d", host, f.Port)
		}
		fmt.Fprintf(&b, "\nThe sandbox refused a connection to %s: %s", host, f.Why)
	}
	r.Text = strings.TrimPrefix(b.String(), "\n")
	return r
}
