package seal

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Checkpoint is a signed statement that a log has a record with this number and hash, which implies all earlier
// records.
type Checkpoint struct {
	Log       string // ID of the log; "" in checkpoints of older versions
	Number    uint64
	Hash      [32]byte
	Time      time.Time
	Key       ed25519.PublicKey
	Signature []byte
}

// Checkpoint returns a signed statement about a record.
func (k Key) Checkpoint(log string, number uint64, hash [32]byte, at time.Time) Checkpoint {
	c := Checkpoint{Log: log, Number: number, Hash: hash, Time: at, Key: k.Public()}
	c.Signature = ed25519.Sign(k.private, c.text())
	return c
}

// Valid reports whether c.Key made the signature. The caller must check whether that key is trusted; see Checks.
func (c Checkpoint) Valid() bool {
	return len(c.Key) == ed25519.PublicKeySize && ed25519.Verify(c.Key, c.text(), c.Signature)
}

// text returns what is signed.
func (c Checkpoint) text() []byte {
	text := fmt.Appendf(nil, "toold checkpoint %d %x %d\n", c.Number, c.Hash, c.Time.UnixNano())
	if c.Log != "" {
		text = fmt.Appendf(text, "of log %q\n", c.Log)
	}
	return text
}

// Manifest returns the signature of a JSON object. Its text cannot be mistaken for that of a checkpoint.
func (k Key) Manifest(object []byte) ([]byte, error) {
	if len(object) == 0 || object[0] != '{' {
		return nil, fmt.Errorf("cannot sign a manifest that is no JSON object")
	}
	return ed25519.Sign(k.private, object), nil
}

// encoded is the JSON form of a Checkpoint.
type encoded struct {
	Number    uint64    `json:"number"`
	Hash      string    `json:"hash"`
	Time      time.Time `json:"time"`
	Key       string    `json:"key"`
	Signature string    `json:"signature"`
	Log       string    `json:"log,omitempty"`
}

// MarshalJSON encodes hashes, keys and signatures in hexadecimal.
func (c Checkpoint) MarshalJSON() ([]byte, error) {
	return json.Marshal(encoded{c.Number, hex.EncodeToString(c.Hash[:]), c.Time.UTC(), hex.EncodeToString(c.Key), hex.EncodeToString(c.Signature), c.Log})
}

// UnmarshalJSON decodes the result of MarshalJSON. It returns an error if the signature is not valid for the key.
func (c *Checkpoint) UnmarshalJSON(text []byte) error {
	var e encoded
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	var fields [3][]byte
	for i, s := range []string{e.Hash, e.Key, e.Signature} {
		var err error
		if fields[i], err = hex.DecodeString(s); err != nil {
			return err
		}
	}
	*c = Checkpoint{Log: e.Log, Number: e.Number, Time: e.Time, Key: fields[1], Signature: fields[2]}
	if copy(c.Hash[:], fields[0]) != len(c.Hash) || len(fields[0]) != len(c.Hash) || !c.Valid() {
		return fmt.Errorf("the checkpoint of record %d was not signed by the key that it names", e.Number)
	}
	return nil
}
