package daemon

import (
	"context"
	"net/http"
	"slices"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/interop/mcp"
	"github.com/toold/toold/message"
)

// newMCP makes the handler of /mcp, a client of this daemon with its caller's token.
func (d *Daemon) newMCP(approvals *approval.Queue[message.ApprovalRequest]) *mcp.Handler {
	page := func(id string) string { return d.Origin() + server.PathOfQuestion(id) }
	return mcp.NewHandler(mcp.HTTPOptions{
		Options: mcp.Options{Question: d.Question, Page: page, Version: d.Version, Fault: d.fault},
		JoinFor: func(mine func(message.ApprovalRequest) bool, asked func(message.ApprovalRequest)) (leave func()) {
			return server.JoinFor(approvals, mine, asked)
		},
		Dial: func(ctx context.Context, p mcp.Caller) (*client.Client, error) {
			return client.Dial(ctx, client.Options{Dial: d.inside.Dial, Token: p.Secret, Name: "mcp", Version: d.Version, Workspace: p.Dir})
		},
		MaxBody: d.Config.Limits.MaxFrameBytes, Linger: d.Config.Limits.Linger,
	})
}

func (d *Daemon) serveMCP(w http.ResponseWriter, r *http.Request, token server.Token) {
	decides := slices.Contains(token.Roles, server.Approver) || slices.Contains(token.Roles, server.Admin)
	d.mcp.Serve(w, r, mcp.Caller{Token: token.Name, Secret: token.Secret, Decides: decides, Dir: r.URL.Query().Get("workspace")})
}
