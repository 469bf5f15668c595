package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// A record's line ends with its seal: the checksum of the line up to there, and of the checksum before. So a line that was changed, left out, put
// elsewhere, or taken from another journal does not fit. It is SHA-256 cut to 64 bits, and not a CRC: that of text behind its own last value does
// not depend on what came before, and one chance in four billion is much for files that people edit. Whoever computes it anew is not told of.
const (
	sealBegin = `,"sum":"`
	sealEnd   = "\"}\n"
	sumLength = 16 // hexadecimal digits
	sealSize  = len(sealBegin) + sumLength + len(sealEnd)
)

// sumOf is the checksum of a line without its seal, behind that of the line before.
func sumOf(previous string, open []byte) string {
	h := sha256.New()
	h.Write([]byte(previous))
	h.Write(open)
	return hex.EncodeToString(h.Sum(nil))[:sumLength]
}

// seal closes a record's line, from which the closing brace was taken.
func seal(previous string, open []byte) (line []byte, sum string) {
	sum = sumOf(previous, open)
	return append(append(append(open, sealBegin...), sum...), sealEnd...), sum
}

// unseal is the opposite of seal; false of a line that has none.
func unseal(line []byte) (open []byte, sum string, ok bool) {
	at := len(line) - sealSize
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(sealBegin)) || !bytes.HasSuffix(line, []byte(sealEnd)) {
		return nil, "", false
	}
	return line[:at], string(line[at+len(sealBegin):][:sumLength]), true
}

// unbrace is a line that has no seal without its closing brace; false where it has none.
func unbrace(line []byte) (open []byte, ok bool) {
	return bytes.CutSuffix(bytes.TrimSpace(line), []byte("}"))
}

func hasSeal(line []byte) bool {
	_, _, ok := unseal(line)
	return ok
}

// Reseal gives the lines of a journal, which a test has changed, seals that fit.
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
