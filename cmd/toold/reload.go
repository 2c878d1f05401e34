package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/internal/server"
)

func reloadCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Make the running daemon take up its policy files", Args: cobra.NoArgs,
		Long: "Makes the running daemon take up its policy files as they are now. It notices changes\n" +
			"of the files by itself; this command tells whether they are good. A faulty policy does\n" +
			"not take the place of the one that holds. Calls that run are not affected; calls that\n" +
			"wait for a person are judged again.",
		RunE: g.remotely(g.reload),
	}
}

func (g *global) reload(ctx context.Context, cfg config.Config, _ []string) error {
	answer, err := g.askReload(ctx, cfg, http.MethodPost)
	if err != nil {
		return console.Exit(console.ExitUnreachable, err)
	}
	if g.JSON {
		if err := g.Emit(answer); err != nil {
			return err
		}
	}
	if answer.Error != "" {
		return console.Exit(console.ExitConfig, fmt.Errorf("%s\nthe last good policy stays in force", answer.Error))
	}
	for _, w := range answer.Warnings {
		fmt.Fprintln(g.Err, "toold: warning:", w)
	}
	fmt.Fprintln(g.Err, "the daemon follows", answer.Policy)
	return nil
}

// askReload reloads (POST) or returns the last result (GET).
func (g *global) askReload(ctx context.Context, cfg config.Config, method string) (answer server.Reloaded, err error) {
	body, err := g.askDaemon(ctx, cfg, "approver", method, "/v1/reload")
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(body, &answer)
}

func (g *global) askDaemon(ctx context.Context, cfg config.Config, role, method, path string) ([]byte, error) {
	secret, err := secretOnDisk(cfg, role)
	if err != nil {
		return nil, err
	}
	at, err := g.endpoint(cfg)
	if err != nil {
		return nil, err
	}
	url := "http" + strings.TrimPrefix(strings.TrimSuffix(at.URL, "/v1/ws"), "ws") + path
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	web := http.Client{Transport: &http.Transport{DialContext: loopback.Dial, TLSClientConfig: at.TLS, DisableKeepAlives: true}}
	res, err := web.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no daemon answers: %w; start one with `toold serve`, or name another with --listen", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("cannot read the daemon's answer: %w", err)
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusUnprocessableEntity {
		return nil, errors.New(string(bytes.TrimSpace(body)))
	}
	return body, nil
}
