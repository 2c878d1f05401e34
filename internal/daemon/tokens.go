package daemon

import (
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/internal/tokens"
)

// TokenFiles returns the file of each configured token by its name.
func TokenFiles(cfg config.Config) map[string]string {
	files := make(map[string]string)
	for _, t := range cfg.Tokens {
		files[t.Name] = tokens.In(cfg.StateDir).Configured(t.Name)
	}
	return files
}

// TokenFile returns the file of a configured token or of an agent's token.
func TokenFile(cfg config.Config, name string) (file string, configured bool) {
	if file, ok := TokenFiles(cfg)[name]; ok {
		return file, true
	}
	return tokens.In(cfg.StateDir).Agent(name), false
}

// tokens returns a function that returns the current tokens. It creates the configured ones that are missing.
func (d *Daemon) tokens() (func() []server.Token, error) {
	if d.Tokens != nil {
		return func() []server.Token { return d.Tokens }, nil
	}
	for _, file := range TokenFiles(d.Config) {
		if _, err := tokens.Make(file); err != nil {
			return nil, err
		}
	}
	return func() []server.Token {
		list, err := readTokens(d.Config)
		if err != nil {
			d.Log.Warn("a token cannot be used", zap.Error(err))
		}
		return list
	}, nil
}

// readTokens returns the usable tokens. err is about the last unusable one.
func readTokens(cfg config.Config) (list []server.Token, err error) {
	for _, t := range cfg.Tokens {
		token, problem := tokens.Read(tokens.In(cfg.StateDir).Configured(t.Name))
		if problem != nil {
			err = problem
			continue
		}
		list = append(list, server.Token{Name: t.Name, Secret: token.Secret, Roles: roles(t), Valid: token.Valid})
	}
	agents, problem := tokens.In(cfg.StateDir).Agents()
	if problem != nil {
		err = problem
	}
	for _, a := range agents {
		if slices.ContainsFunc(cfg.Tokens, func(t config.Token) bool { return t.Name == a.Name }) {
			err = fmt.Errorf("the token %s has the name of another in the configuration; revoke one of them", a.File)
			continue
		}
		list = append(list, server.Token{Name: a.Name, Secret: a.Secret, Roles: []server.Role{server.Agent}, Valid: a.Valid})
	}
	return list, err
}

// FreshTokens creates tokens for Options.Tokens.
func FreshTokens(cfg config.Config) []server.Token {
	list := []server.Token{}
	for _, t := range cfg.Tokens {
		list = append(list, server.Token{Name: t.Name, Secret: tokens.NewSecret(), Roles: roles(t)})
	}
	return list
}

func roles(t config.Token) []server.Role {
	var rs []server.Role
	for _, r := range t.Roles {
		rs = append(rs, server.Role(r))
	}
	return rs
}
