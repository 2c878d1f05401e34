// Package seal signs the records of a journal, and compares a journal with signatures and with links stored elsewhere.
// It does not read journals: the caller passes the records. A signature proves possession of the private key, but not
// when it was made: whoever can read the key can sign another history.
package seal

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toold/toold/internal/statedir"
)

// PEM block types.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// Key is a private key. The zero Key cannot sign.
type Key struct{ private ed25519.PrivateKey }

// Open reads the key in a file, and creates it if it is missing. It must not run concurrently for one file.
func Open(path string) (Key, error) {
	k, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		k, err = create(path)
	}
	if err != nil {
		return Key{}, fmt.Errorf("cannot use the key that signs the journal: %w", err)
	}
	return k, nil
}

func read(path string) (Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Key{}, err
	}
	if !info.Mode().IsRegular() {
		return Key{}, fmt.Errorf("%s is no file: restore it, or move it away: another one is made then", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Key{}, fmt.Errorf("others may read or change %s: run chmod 600 on it, and if they could read it move it away: another one is made then", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Key{}, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != privateBlock {
		return Key{}, fmt.Errorf("%s has no private key: restore it, or move it away: another one is made then", path)
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, is := any.(ed25519.PrivateKey)
	if err != nil || !is {
		return Key{}, fmt.Errorf("%s has no private key of Ed25519 (%v): restore it, or move it away: another one is made then", path, err)
	}
	return Key{private}, nil
}

func create(path string) (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Key{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der})
	if err := statedir.Replace(path, text, 0o600); err != nil {
		return Key{}, err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return Key{}, err
	}
	return Key{private}, errors.Join(dir.Sync(), dir.Close())
}

// Public returns the public key.
func (k Key) Public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// ID returns a short name of a public key: the first 8 bytes of its SHA-256, in hexadecimal.
func ID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// EncodePublic encodes a public key as PEM.
func EncodePublic(public ed25519.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der})), nil
}

// DecodePublic decodes one or more PEM public keys.
func DecodePublic(text []byte) (keys []ed25519.PublicKey, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		any, err := x509.ParsePKIXPublicKey(block.Bytes)
		public, is := any.(ed25519.PublicKey)
		if err != nil || !is || block.Type != publicBlock {
			return nil, fmt.Errorf("a block %q is no public key of Ed25519 (%v)", block.Type, err)
		}
		keys = append(keys, public)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no public key: `toold audit key` prints one")
	}
	return keys, nil
}
