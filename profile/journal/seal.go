package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// A record's line ends with its seal: a checksum of the line before the seal and of the previous
// line's checksum. So a line that was changed, removed, moved, or taken from another journal does
// not match.
//
// The checksum is SHA-256 cut to 64 bits, and not a CRC. The CRC of a text that follows its own
// last value does not depend on the text before. A CRC also has one chance in four billion to
// match, which is high for files that people edit. The seal does not detect someone who computes it
// again.
const (
	sealBegin = `,"sum":"`
	sealEnd   = "\"}\n"
	sumLength = 16 // hexadecimal digits
	sealSize  = len(sealBegin) + sumLength + len(sealEnd)
)

// sumOf returns the checksum of a line without its seal, continuing the previous line's checksum.
func sumOf(previous string, open []byte) string {
	h := sha256.New()
	h.Write([]byte(previous))
	h.Write(open)
	return hex.EncodeToString(h.Sum(nil))[:sumLength]
}

// seal completes a record's line that lacks its closing brace.
func seal(previous string, open []byte) (line []byte, sum string) {
	sum = sumOf(previous, open)
	return append(append(append(open, sealBegin...), sum...), sealEnd...), sum
}

// unseal is the inverse of seal. It returns false for a line without a seal.
func unseal(line []byte) (open []byte, sum string, ok bool) {
	at := len(line) - sealSize
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(sealBegin)) || !bytes.HasSuffix(line, []byte(sealEnd)) {
		return nil, "", false
	}
	return line[:at], string(line[at+len(sealBegin):][:sumLength]), true
}

// unbrace removes the closing brace of a line without a seal. It returns false if the line has
// none.
func unbrace(line []byte) (open []byte, ok bool) {
	return bytes.CutSuffix(bytes.TrimSpace(line), []byte("}"))
}

func hasSeal(line []byte) bool {
	_, _, ok := unseal(line)
	return ok
}

// Reseal gives the lines of a journal valid seals after a test has changed them.
func Reseal(text []byte) []byte {
	var all, line []byte
	previous := ""
	for old := range bytes.Lines(text) {
		open, _, ok := unseal(old)
		if !ok {
			open, _ = unbrace(old)
		}
		line, previous = seal(previous, bytes.Clone(open))
		all = append(all, line...)
	}
	return all
}
