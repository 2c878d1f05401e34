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
	"sync"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/internal/server"
)

// policyName is what the policy of a configuration is called.
func policyName(cfg config.Config) string { return orDefault(cfg.Policy, `built-in "careful"`) }

// policies puts a changed policy into force, or keeps the one that holds.
type policies struct {
	load func() (warnings []string, err error) // takes up the files and puts them into force
	name string
	more chan struct{} // capacity 1: there are further files to watch
	log  *zap.Logger
	held sync.Mutex // one reload at a time, so that the newest file wins
	last server.Reloaded
}

// state is what the last reload came to.
func (p *policies) state() server.Reloaded {
	p.held.Lock()
	defer p.held.Unlock()
	return p.last
}

// reload takes up the policy files as they are now. On an error the policy that
// held goes on holding.
func (p *policies) reload() (server.Reloaded, error) {
	p.held.Lock()
	defer p.held.Unlock()
	warnings, err := p.load()
	if err != nil {
		p.log.Error("the policy cannot be used; the last good one goes on holding", zap.String("policy", p.name), zap.Error(err))
		p.last.Error = err.Error()
		return server.Reloaded{Policy: p.name}, err
	}
	p.last = server.Reloaded{Policy: p.name, Warnings: warnings}
	p.log.Info("policy loaded", zap.String("policy", p.name), zap.Strings("warnings", warnings))
	return p.last, nil
}

// follow makes watch look at which files there are. What has changed of them since they
// were read is taken up.
func (p *policies) follow() {
	select {
	case p.more <- struct{}{}:
	default: // it has not looked yet
	}
}

func reloadCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Make the running daemon take up its policy files", Args: cobra.NoArgs,
		Long: "Makes the running daemon take up its policy files as they are now. It notices changes\n" +
			"of the files by itself; this command tells whether they are good. A faulty policy does\n" +
			"not take the place of the one that holds. Calls that run are not affected; calls that\n" +
			"wait for a person are judged again.",
		RunE: func(cmd *cobra.Command, _ []string) error { return g.reload(cmd.Context()) },
	}
}

func (g *global) reload(ctx context.Context) error {
	cfg, err := g.remote()
	if err != nil {
		return err
	}
	answer, err := g.askReload(ctx, cfg, http.MethodPost)
	if err != nil {
		return &exitError{exitUnreachable, err}
	}
	if g.json {
		if err := g.emit(answer); err != nil {
			return &exitError{exitFailed, err}
		}
	}
	if answer.Error != "" {
		return &exitError{exitConfig, fmt.Errorf("%s\nthe policy that held goes on holding", answer.Error)}
	}
	for _, w := range answer.Warnings {
		fmt.Fprintln(g.std.err, "toold: warning:", w)
	}
	fmt.Fprintln(g.std.err, "the daemon follows", answer.Policy)
	return nil
}

// askReload asks the running daemon to reload (POST), or what the last reload came
// to (GET).
func (g *global) askReload(ctx context.Context, cfg config.Config, method string) (answer server.Reloaded, err error) {
	secret, err := secretOnDisk(cfg, "approver")
	if err != nil {
		return answer, err
	}
	at, err := g.endpoint(cfg)
	if err != nil {
		return answer, err
	}
	// The address of the socket, as a web address.
	url := "http" + strings.TrimPrefix(strings.TrimSuffix(at.URL, "/v1/ws"), "ws") + "/v1/reload"
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return answer, err
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	web := http.Client{Transport: &http.Transport{DialContext: loopback.Dial, TLSClientConfig: at.TLS, DisableKeepAlives: true}}
	res, err := web.Do(req)
	if err != nil {
		return answer, fmt.Errorf("no daemon answers: %w; start one with `toold serve`, or name another with --listen", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return answer, fmt.Errorf("cannot read the daemon's answer: %w", err)
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusUnprocessableEntity {
		return answer, errors.New(string(bytes.TrimSpace(body)))
	}
	return answer, json.Unmarshal(body, &answer)
}
