package daemon

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

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
	return lasting(func() ([]server.Token, error) {
		list, err := readTokens(d.Config)
		if err != nil {
			d.Log.Warn("a token cannot be used", zap.Error(err))
		}
		return list, err
	}), nil
}

// lasting returns a function that reads tokens. If they cannot be read for now, for instance because too many files are
// open, it returns those of the last time that are still valid: a client must not learn that its token is wrong.
func lasting(read func() ([]server.Token, error)) func() []server.Token {
	var mu sync.Mutex
	var last []server.Token
	return func() []server.Token {
		list, err := read()
		mu.Lock()
		defer mu.Unlock()
		if why, is := errors.AsType[syscall.Errno](err); is && why.Temporary() {
			return slices.DeleteFunc(slices.Clone(last), func(t server.Token) bool { return !t.Valid() })
		}
		last = list
		return list
	}
}

// known returns a function that reports whether a client still has a token.
func known(tokens func() []server.Token) func(client string) bool {
	return func(client string) bool {
		return slices.ContainsFunc(tokens(), func(t server.Token) bool { return t.Name == client })
	}
}

// readTokens returns the usable tokens. err is about the unusable ones.
func readTokens(cfg config.Config) (list []server.Token, err error) {
	for _, t := range cfg.Tokens {
		token, problem := tokens.Read(tokens.In(cfg.StateDir).Configured(t.Name))
		if problem != nil {
			err = errors.Join(err, problem)
			continue
		}
		list = append(list, server.Token{Name: t.Name, Secret: token.Secret, Roles: roles(t), Valid: token.Valid})
	}
	agents, problem := tokens.In(cfg.StateDir).Agents()
	err = errors.Join(err, problem)
	for _, a := range agents {
		if slices.ContainsFunc(cfg.Tokens, func(t config.Token) bool { return t.Name == a.Name }) {
			err = errors.Join(err, fmt.Errorf("the token %s has the name of another in the configuration; revoke one of them", a.File))
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
