// Package checksum computes digests that identify files and values by their content.
package checksum

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
)

// File returns the SHA-256 of a file's content, in lower-case hexadecimal. Errors are those of
// package os, with the path.
func File(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return Of(f)
}

// Of returns the SHA-256 of the remaining content of r, in lower-case hexadecimal.
func Of(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// OfJSON returns the SHA-256 of a value's JSON, as encoding/json writes it, in lower-case
// hexadecimal.
func OfJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
