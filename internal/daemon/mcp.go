package daemon

import (
	"context"
	"net/http"
	"slices"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/interop/mcp"
)

// newMCP returns what answers /mcp. It is a client of this daemon, with the token of the
// client that it answers.
func (d *Daemon) newMCP() *mcp.Handler {
	return mcp.NewHandler(mcp.HTTPOptions{
		Options: mcp.Options{Question: d.Question, Version: d.Version, Fault: d.fault},
		Dial: func(ctx context.Context, p mcp.Peer) (*client.Client, error) {
			return client.Dial(ctx, client.Options{Dial: d.inside.Dial, Token: p.Secret, Name: "mcp", Version: d.Version, Workspace: p.Dir})
		},
		MaxBody: d.Config.Limits.MaxFrameBytes, Linger: d.Config.Limits.Linger,
	})
}

func (d *Daemon) serveMCP(w http.ResponseWriter, r *http.Request, who server.Token) {
	decides := slices.Contains(who.Roles, server.Approver) || slices.Contains(who.Roles, server.Admin)
	d.mcp.Serve(w, r, mcp.Peer{Token: who.Name, Secret: who.Secret, Decides: decides, Dir: r.URL.Query().Get("workspace")})
}
