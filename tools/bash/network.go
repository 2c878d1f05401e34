package bash

import (
	"context"
	"errors"

	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/tools"
)

func (v *invocation) network(io tools.IO) *egress.Server {
	o := v.tool.options.Egress
	o.Allow, o.Revoked = io.Connect, io.Revoked
	if o.Allow == nil {
		o.Allow = func(context.Context, string, []uint16) error {
			return errors.New("no one decides on connections here")
		}
	}
	return egress.New(o)
}
