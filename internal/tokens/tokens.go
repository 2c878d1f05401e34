// Package tokens stores the secrets of clients in a file each: those of the configuration in tokens, those of
// connected agents in tokens/agent.d. Files are replaced, never changed, so that Valid can compare them.
package tokens

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/lazyregexp"
)

// Store contains the tokens of a state directory.
type Store struct{ dir string }

// In returns the tokens of a state directory.
func In(stateDir string) Store { return Store{filepath.Join(stateDir, "tokens")} }

// Dir returns the directory of the configured tokens.
func (s Store) Dir() string { return s.dir }

// Token is a token read from disk.
type Token struct {
	Name   string
	File   string
	Secret string
	Made   time.Time
	info   fs.FileInfo
}

// Valid reports whether the token was neither revoked nor rotated since it was read. A file in a directory without
// permissions cannot be examined and counts as unchanged, since no one can have revoked it there.
func (t Token) Valid() bool {
	now, err := os.Stat(t.File)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(now, t.info) && now.ModTime().Equal(t.info.ModTime())
}

// Configured returns the file of a configured token.
func (s Store) Configured(name string) string { return filepath.Join(s.dir, name) }

// Agent returns the file of an agent's token.
func (s Store) Agent(name string) string { return filepath.Join(s.dir, "agent.d", name) }

var agentName = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// CheckName returns an error if an agent's token cannot have this name.
func CheckName(name string) error {
	if agentName().MatchString(name) {
		return nil
	}
	return fmt.Errorf("%q cannot be the name of a token: use 1 to 32 of a-z, 0-9, - and _, beginning with a letter or digit", name)
}

// Agents returns the tokens of connected agents. It skips those that Read refuses, and err says why.
func (s Store) Agents() (list []Token, err error) {
	entries, err := os.ReadDir(s.Agent(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the tokens of agents: %w", err)
	}
	for _, e := range entries {
		if CheckName(e.Name()) != nil {
			continue // being written
		}
		t, problem := Read(s.Agent(e.Name()))
		if problem != nil {
			err = errors.Join(err, problem)
			continue
		}
		list = append(list, t)
	}
	return list, err
}

// Make returns the token in a file, which it creates if it is missing.
func Make(file string) (Token, error) {
	if _, err := os.Lstat(file); err == nil {
		return Read(file)
	}
	if err := replace(file, os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
		return Token{}, err
	}
	return Read(file)
}

// Rotate replaces the secret of a token. The old secret is invalid at once.
func Rotate(file string) (Token, error) {
	if _, err := Read(file); err != nil {
		return Token{}, err
	}
	if err := replace(file, os.Rename); err != nil {
		return Token{}, err
	}
	return Read(file)
}

// Revoke removes a token.
func Revoke(file string) error {
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("cannot revoke the token: %w", err)
	}
	return nil
}

// replace writes a new secret to a file next to file, and moves it there.
func replace(file string, move func(from, to string) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("cannot make the directory of the tokens: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("cannot make a token: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(NewSecret() + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("cannot write a token: %w", err)
	}
	if err := move(f.Name(), file); err != nil {
		return fmt.Errorf("cannot write a token: %w", err)
	}
	return nil
}

// NewSecret returns 256 random bits as text.
func NewSecret() string {
	var bits [32]byte
	rand.Read(bits[:]) // never fails (crypto/rand)
	return hex.EncodeToString(bits[:])
}

// Read reads a token. It returns an error if other users can read the file.
func Read(file string) (Token, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Token{}, fmt.Errorf("there is no token %s yet: start the daemon in your project, which makes it: toold serve", file)
	}
	if err != nil {
		return Token{}, fmt.Errorf("cannot read a token: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Token{}, fmt.Errorf("cannot read a token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Token{}, fmt.Errorf("the token %s can be read by others; take that away: chmod 600 %s", file, display.Operand(file))
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return Token{}, fmt.Errorf("cannot read a token: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < 32 {
		return Token{}, fmt.Errorf("the token in %s is too short to be safe; make a new one: toold token rotate %s", file, display.Operand(filepath.Base(file)))
	}
	return Token{Name: filepath.Base(file), File: file, Secret: secret, Made: info.ModTime(), info: info}, nil
}
