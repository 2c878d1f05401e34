package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/server"
)

func tokenFile(stateDir, name string) string {
	return filepath.Join(stateDir, "tokens", name)
}

func tokenFiles(cfg config.Config) map[string]string {
	files := make(map[string]string)
	for _, t := range cfg.Tokens {
		files[t.Name] = tokenFile(cfg.StateDir, t.Name)
	}
	return files
}

// loadTokens reads the tokens of the configuration, making those that do not
// exist yet.
func loadTokens(cfg config.Config) ([]server.Token, error) {
	if err := os.MkdirAll(filepath.Join(cfg.StateDir, "tokens"), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the tokens: %w", err)
	}
	var tokens []server.Token
	for _, t := range cfg.Tokens {
		secret, err := readOrMakeToken(tokenFile(cfg.StateDir, t.Name))
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, server.Token{Name: t.Name, Secret: secret, Roles: roles(t)})
	}
	return tokens, nil
}

// freshTokens makes tokens that live in this process only.
func freshTokens(cfg config.Config) []server.Token {
	var tokens []server.Token
	for _, t := range cfg.Tokens {
		tokens = append(tokens, server.Token{Name: t.Name, Secret: newSecret(), Roles: roles(t)})
	}
	return tokens
}

func roles(t config.Token) []server.Role {
	var rs []server.Role
	for _, r := range t.Roles {
		rs = append(rs, server.Role(r))
	}
	return rs
}

// newSecret returns 256 random bits as text.
func newSecret() string {
	var bits [32]byte
	rand.Read(bits[:]) // never fails (crypto/rand)
	return hex.EncodeToString(bits[:])
}

func readOrMakeToken(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return readToken(file)
	}
	if err != nil {
		return "", fmt.Errorf("cannot make a token: %w", err)
	}
	secret := newSecret()
	_, err = f.WriteString(secret + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		os.Remove(file) // a half-written token would be kept for ever
		return "", fmt.Errorf("cannot write a token: %w", err)
	}
	return secret, nil
}

// readToken reads a token, and refuses one that others can read.
func readToken(file string) (string, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no token %s yet: start the daemon in your project, which makes it: toold serve", file)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read a token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("the token %s can be read by others; take that away: chmod 600 %s", file, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read a token: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < 32 {
		return "", fmt.Errorf("the token in %s is too short to be safe; remove the file and restart toold to have a new one", file)
	}
	return secret, nil
}
